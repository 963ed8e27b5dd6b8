/** N servers that run the real scripts on a clock and a network that the test controls. */
import { embedded, Keyspace, loadInterpreter } from "@holdfast/embedded";
import { createHoldfastOn } from "../../src/holdfast.js";
import {
  type Holdfast,
  type HoldfastOptions,
  type Inspection,
  type Reply,
  type Script,
  type Store,
  StoreError,
} from "../../src/index.js";
import { ManualRuntime, settle } from "../unit/manual-runtime.js";

/** A runtime for several clients. */
export class QuorumRuntime extends ManualRuntime {
  #clients = 0;

  override newClientId(): string {
    this.#clients += 1;
    return `virtual-client${String(this.#clients).padStart(2, "-")}`;
  }
}

/** One request, as it was sent. */
export interface Request {
  readonly server: number;
  /** Name of the script without its folder, such as "acquire". */
  readonly verb: string;
  readonly owner: string;
  readonly args: readonly (string | number)[];
  readonly atMs: number;
  readonly timeoutMs: number;
  /** Delivers the request once more. */
  readonly again: () => Promise<unknown>;
}

/** How long a request takes to the server and back. Infinity means that it is lost. */
export interface Travel {
  readonly thereMs?: number;
  readonly backMs?: number;
  /** The server is down: nothing runs, and the client knows that. */
  readonly refused?: string;
}

const AT_ONCE: Travel = {};
const MANAGED = /^redlock\//;

export class VirtualQuorum {
  readonly runtime = new QuorumRuntime();
  readonly keyspaces: readonly Keyspace[];
  readonly requests: Request[] = [];
  /** Determines how long each request takes. */
  travel: (request: Request) => Travel = () => AT_ONCE;
  /** Whether messages from that server arrive. */
  isHeard: (server: number) => boolean = () => true;
  readonly #holdfasts: Holdfast[] = [];
  readonly #reconnectListeners = new Set<Parameters<Store["onReconnect"]>[0]>();

  /** @param skewsMs  how far each server's clock is ahead */
  constructor(size: number, skewsMs: readonly number[] = []) {
    this.keyspaces = Array.from(
      { length: size },
      (_, server) =>
        new Keyspace({
          clock: { nowUs: () => Math.round((this.runtime.wallMs() + (skewsMs[server] ?? 0)) * 1_000) },
          scheduler: { schedule: (task) => queueMicrotask(task) },
        }),
    );
  }

  /** Creates a client of all servers. */
  client(options: Partial<HoldfastOptions> = {}): Holdfast {
    const redlock = this.keyspaces.map((keyspace, server) => this.#store(keyspace, server));
    const holdfast = createHoldfastOn(this.runtime, { redlock, allowEviction: true, ...options });
    this.#holdfasts.push(holdfast);
    return holdfast;
  }

  /** Creates a client that lists the servers in the opposite order. */
  reversed(options: Partial<HoldfastOptions> = {}): Holdfast {
    const redlock = this.keyspaces.map((keyspace, server) => this.#store(keyspace, server)).toReversed();
    const holdfast = createHoldfastOn(this.runtime, { redlock, allowEviction: true, ...options });
    this.#holdfasts.push(holdfast);
    return holdfast;
  }

  /** Requests of that verb. */
  sent(verb: string): Request[] {
    return this.requests.filter((request) => request.verb === verb);
  }

  /** The owner of the lock on each server, or undefined. */
  owners(name: string): (string | undefined)[] {
    return this.keyspaces.map((keyspace) => this.#value(keyspace, `hf:redlock:{${name}}`));
  }

  /** The number from which each server derives tokens. */
  numbers(name: string): (number | undefined)[] {
    return this.keyspaces.map((keyspace) => {
      const value = this.#value(keyspace, `hf:redlock:{${name}}:fence`);
      return value === undefined ? undefined : Number(value);
    });
  }

  /** Lets another client take the lock on one server for `leaseMs`. */
  async occupy(server: number, name: string, leaseMs: number, owner = `stranger/1/${leaseMs}/1`): Promise<void> {
    const keyspace = this.keyspaces[server];
    if (keyspace === undefined) throw new Error(`there is no server ${server}`);
    await embedded({ keyspace }).run(
      script("return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])['ok'] and 1"),
      [`hf:redlock:{${name}}`],
      [owner, leaseMs],
      1_000,
    );
  }

  /** Delivers these requests once more, immediately. */
  async resend(requests: readonly Request[]): Promise<void> {
    for (const { server, again } of requests) {
      if (this.keyspaces[server] === undefined) throw new Error(`there is no server ${server}`);
      await again();
    }
  }

  /** The result of `inspect`. */
  async inspected(holdfast: Holdfast, name: string): Promise<Inspection> {
    const looking = holdfast.redlock(name).inspect();
    await settle();
    return looking;
  }

  /** Deletes all keys of a server, as if it had lost its memory. */
  async forget(server: number): Promise<void> {
    const keyspace = this.keyspaces[server];
    if (keyspace === undefined) throw new Error(`there is no server ${server}`);
    const keys = keyspace.keys();
    if (keys.length === 0) return;
    const del = script(`return redis.call('DEL', ${keys.map((_, i) => `KEYS[${i + 1}]`).join(", ")})`);
    await embedded({ keyspace }).run(del, keys, [], 1_000);
  }

  /** Simulates a short interruption of the subscriber connections of all clients. */
  flap(): void {
    for (const listener of this.#reconnectListeners) listener("inbox");
  }

  /** Closes all clients, and advances the virtual time meanwhile. */
  async close(): Promise<void> {
    this.travel = () => AT_ONCE;
    const closing = Promise.all(this.#holdfasts.map((holdfast) => holdfast.close()));
    await this.runtime.advance(60_000);
    await closing;
  }

  #value(keyspace: Keyspace, key: string): string | undefined {
    const entry = keyspace.dump().find((dumped) => dumped.key === key);
    return entry === undefined ? undefined : String(entry.value);
  }

  #store(keyspace: Keyspace, server: number): Store {
    const behind = embedded({ keyspace });
    return {
      kind: "virtual",
      run: (called, keys, args, timeoutMs) => this.#run(behind, server, called, keys, args, timeoutMs),
      inbox: (channel, onMessage, timeoutMs) =>
        behind.inbox(channel, (message) => this.isHeard(server) && onMessage(message), timeoutMs),
      onReconnect: (listener) => {
        this.#reconnectListeners.add(listener);
        return () => this.#reconnectListeners.delete(listener);
      },
      close: () => behind.close(),
    };
  }

  #run(
    behind: Store,
    server: number,
    called: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    timeoutMs: number,
  ): Promise<Reply> {
    const run = (): Promise<Reply> => behind.run(called, keys, args, timeoutMs);
    if (!MANAGED.test(called.name)) return run();
    const { runtime } = this;
    const verb = called.name.replace(MANAGED, "");
    const request = {
      server,
      verb,
      owner: String(args[0] ?? ""),
      args,
      atMs: runtime.monotonicMs(),
      timeoutMs,
      again: run,
    };
    this.requests.push(request);
    const { thereMs = 0, backMs = 0, refused } = this.travel(request);
    if (refused !== undefined) {
      return Promise.reject(new StoreError(called.name, { mayHaveRun: false, transient: true, cause: refused }));
    }
    return new Promise((resolve, reject) => {
      const deadline = runtime.startTimer(
        () => {
          const cause = new Error(`no reply within ${timeoutMs} ms`);
          reject(new StoreError(called.name, { mayHaveRun: true, transient: true, cause }));
        },
        timeoutMs,
        false,
      );
      const settled = (end: () => void): void =>
        this.#after(backMs, () => {
          deadline.cancel();
          end();
        });
      this.#after(thereMs, () => {
        run().then(
          (reply) => settled(() => resolve(reply)),
          (error: unknown) => settled(() => reject(error)),
        );
      });
    });
  }

  #after(delayMs: number, then: () => void): void {
    if (delayMs === 0) then();
    else if (delayMs < Infinity) this.runtime.startTimer(then, delayMs, false);
  }
}

function script(source: string): Script {
  return { name: "test", sha1: source, keys: [], args: [], replies: [], source };
}

/** Generates pseudo-random numbers that depend only on the seed. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Must run before the first test: loading takes real time, which the virtual clock does not wait for. */
export async function ready(): Promise<void> {
  await loadInterpreter();
}

export { settle };
