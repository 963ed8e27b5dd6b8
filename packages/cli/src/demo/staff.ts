/** The workers of the demo: as processes on a Redis, or in this process on the embedded store. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createHoldfast, type Inbox, type Store } from "holdfast";
import type { CommonFlags } from "../frame/flags.js";
import type { Shop } from "./shop.js";
import { startWorker, type WorkerEvent } from "./worker.js";
import { type FromWorker, type ToWorker, WORKER_VARIABLE } from "./worker-process.js";

/** Of the demo, and of nothing else. */
export const PREFIX = "hf-demo";

/** One of them. */
export interface Hand {
  readonly name: string;
  press(payment: string): void;
  /** As kill -9: it gives nothing back, and nobody is told. */
  kill(): Promise<void>;
  /** It gives back what it holds. */
  close(): Promise<void>;
}

/** What starts one. It may be called again for a name that was killed. */
export type Hire = (name: string, report: (event: WorkerEvent) => void) => Promise<Hand>;

/** Workers in this process, each a client of its own. Without a lock there is nothing to be a client of. */
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

/** A dead worker does nothing more to the shop either. */
function mortal(shop: Shop, store: MortalStore): Shop {
  const alive = <Result>(work: () => Promise<Result>): Promise<Result> => store.unlessDead(work);
  return {
    hasOrder: (payment) => alive(() => shop.hasOrder(payment)),
    charge: (payment) => alive(() => shop.charge(payment)),
    writeOrder: (payment, token) => alive(() => shop.writeOrder(payment, token)),
    pullFeed: (term) => alive(() => shop.pullFeed(term)),
  };
}

/** A store whose process can die: from then on nothing leaves it and nothing reaches it, and no call returns. */
class MortalStore implements Store {
  readonly kind = "embedded";
  readonly #inner: Store;
  #isDead = false;

  constructor(inner: Store) {
    this.#inner = inner;
  }

  /** Runs `work`, and never comes back if it died before or meanwhile. */
  async unlessDead<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isDead) return await never();
    const result = await work();
    return this.#isDead ? await never() : result;
  }

  async die(): Promise<void> {
    this.#isDead = true;
    // The server sees a connection that is gone: whoever waited here is no longer listening.
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

/** Workers in processes of their own, each with its own connection to that Redis. */
export function hireProcesses(common: CommonFlags, shop: Shop, withLock: boolean): Hire {
  return async (name, report) => {
    // The command itself once more: in a package that is bundled there is no other file to start.
    const child = fork(process.argv[1] ?? "", ["demo"], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: { ...process.env, [WORKER_VARIABLE]: "1" },
    });
    child.on("message", (message) => {
      const from = message as FromWorker; // our own program speaks
      if (from.type === "event") report(from.event);
      else if (from.type === "call") void answer(child, shop, from);
    });
    const gone = once(child, "exit").then(() => Promise.reject(new Error(`${name} did not start`)));
    gone.catch(() => {}); // of interest until it has started
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
  // It may have been killed just now: then there is nobody to tell.
  if (child.connected) child.send(message, () => {});
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}
