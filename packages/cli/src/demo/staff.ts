/**
 * The workers of the demo: separate processes with a Redis server, or objects in this process with the embedded store.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createHoldfast, type Inbox, type Store } from "holdfast";
import type { CommonFlags } from "../frame/flags.js";
import type { Shop } from "./shop.js";
import { startWorker, type WorkerEvent } from "./worker.js";
import { type FromWorker, type ToWorker, WORKER_VARIABLE } from "./worker-process.js";

/** The key prefix of the demo, which nothing else uses. */
export const PREFIX = "hf-demo";

/** One worker, as the demo controls it. */
export interface Hand {
  readonly name: string;
  press(payment: string): void;
  /** Kills the worker as with kill -9: it releases nothing and notifies no other client. */
  kill(): Promise<void>;
  /** Ends the worker after it has released what it holds. */
  close(): Promise<void>;
}

/** Starts a worker. You can call it again with the name of a killed worker. */
export type Hire = (name: string, report: (event: WorkerEvent) => void) => Promise<Hand>;

/** Starts workers in this process, each with its own client. Without a lock they need no client. */
export function hireHere(openStore: () => Store, shop: Shop, withLock: boolean): Hire {
  return async (name, report) => {
    const store = new MortalStore(openStore());
    const holdfast = withLock ? createHoldfast({ store, prefix: PREFIX, clientName: name, leaseMs: 3_000 }) : undefined;
    const worker = startWorker(holdfast, mortal(shop, store), report);
    return {
      name,
      press: worker.press,
      async kill() {
        await store.die();
      },
      async close() {
        await worker.close();
        await holdfast?.close();
      },
    };
  };
}

/** Wraps the shop so that a dead worker cannot act on it. */
function mortal(shop: Shop, store: MortalStore): Shop {
  const alive = <Result>(work: () => Promise<Result>): Promise<Result> => store.unlessDead(work);
  return {
    hasOrder: (payment) => alive(() => shop.hasOrder(payment)),
    charge: (payment) => alive(() => shop.charge(payment)),
    writeOrder: (payment, token) => alive(() => shop.writeOrder(payment, token)),
    pullFeed: (term) => alive(() => shop.pullFeed(term)),
  };
}

/** A store that imitates the death of its process. After `die`, it sends and receives nothing and never replies. */
class MortalStore implements Store {
  readonly kind = "embedded";
  readonly #inner: Store;
  #isDead = false;

  constructor(inner: Store) {
    this.#inner = inner;
  }

  /** Runs `work`. Never resolves if the store is dead or dies in the meantime. */
  async unlessDead<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isDead) return await never();
    const result = await work();
    return this.#isDead ? await never() : result;
  }

  async die(): Promise<void> {
    this.#isDead = true;
    // A real server notices the closed connection and stops notifying the dead waiter.
    await this.#inner.close();
  }

  run(...call: Parameters<Store["run"]>): ReturnType<Store["run"]> {
    return this.unlessDead(() => this.#inner.run(...call));
  }

  inbox(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    const whileAlive = (message: string): void => {
      if (!this.#isDead) onMessage(message);
    };
    return this.unlessDead(() => this.#inner.inbox(channel, whileAlive, timeoutMs));
  }

  onReconnect(listener: (connection: "commands" | "inbox") => void): () => void {
    return this.#inner.onReconnect(listener);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** Starts workers in separate processes, each with its own connection to the Redis server. */
export function hireProcesses(common: CommonFlags, shop: Shop, withLock: boolean): Hire {
  return async (name, report) => {
    // Start the command itself again, because a bundled package contains no other file to start.
    const child = fork(process.argv[1] ?? "", ["demo"], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: { ...process.env, [WORKER_VARIABLE]: "1" },
    });
    child.on("message", (message) => {
      const from = message as FromWorker; // only the demo's own worker sends messages
      if (from.type === "event") report(from.event);
      else if (from.type === "call") void answer(child, shop, from);
    });
    const gone = once(child, "exit").then(() => Promise.reject(new Error(`${name} did not start`)));
    gone.catch(() => {}); // an early exit matters only until the worker has started
    await Promise.race([once(child, "message"), gone]);
    send(child, { type: "start", common: { ...common, prefix: PREFIX, clientName: name }, withLock });
    await Promise.race([once(child, "message"), gone]);
    return {
      name,
      press: (payment) => send(child, { type: "press", payment }),
      async kill() {
        if (!isRunning(child)) return;
        const gone = once(child, "exit");
        child.kill("SIGKILL");
        await gone;
      },
      async close() {
        if (!isRunning(child)) return;
        const gone = once(child, "exit");
        const impatience = setTimeout(() => child.kill("SIGKILL"), 10_000);
        send(child, { type: "close" });
        await gone;
        clearTimeout(impatience);
      },
    };
  };
}

async function answer(
  child: ChildProcess,
  shop: Shop,
  { id, verb, args }: Extract<FromWorker, { type: "call" }>,
): Promise<void> {
  const verbs: Readonly<Record<string, (...values: readonly unknown[]) => Promise<unknown>>> = {
    hasOrder: (payment) => shop.hasOrder(String(payment)),
    charge: (payment) => shop.charge(String(payment)),
    writeOrder: (payment, token) => shop.writeOrder(String(payment), token === null ? undefined : Number(token)),
    pullFeed: (term) => shop.pullFeed(Number(term)),
  };
  send(child, { type: "answer", id, value: await verbs[verb]?.(...args) });
}

function send(child: ChildProcess, message: ToWorker): void {
  // The worker may have been killed in the meantime, and then there is no receiver.
  if (child.connected) child.send(message, () => {});
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}
