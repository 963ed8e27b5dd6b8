/** A lock whose server sends scripted replies. It implements the ports of core and records every request. */

import { StoreError, UnsupportedError } from "../../src/core/errors.js";
import { evictionQuestion, Guard, type MemoryPolicy } from "../../src/core/guard.js";
import { SlotInboxes } from "../../src/core/inbox.js";
import type { Echo } from "../../src/core/inbox-check.js";
import { Lease } from "../../src/core/lease.js";
import { LocalQueues } from "../../src/core/local-queue.js";
import { Lock } from "../../src/core/lock.js";
import { DEFAULTS } from "../../src/core/options.js";
import type { AcquireReply, Claim, LockProtocol, State } from "../../src/core/protocol.js";
import { Session } from "../../src/core/session.js";
import type { Inbox, Store } from "../../src/core/store.js";
import { ManualRuntime } from "./manual-runtime.js";

/** The requests that a lock sends. */
export type Verb = "acquire" | "extend" | "release" | "leave" | "adopt" | "forceRelease" | "inspect";

/** One request, and when it was sent on the monotonic clock. */
export interface Sent {
  readonly verb: Verb;
  readonly atMs: number;
  readonly timeoutMs: number;
  readonly claim: Claim | undefined;
  readonly enqueue: boolean | undefined;
}

/** The server's reply to each verb. Each function is called once per request. */
export interface Answers {
  acquire(call: Sent): Promise<AcquireReply>;
  extend(call: Sent): Promise<"extended" | "unclaimed" | "claimed" | "forgotten">;
  release(call: Sent): Promise<"released" | "unclaimed" | "claimed" | "forgotten">;
  leave(call: Sent): Promise<void>;
  adopt(call: Sent): Promise<"adopted" | "unclaimed" | "claimed" | "forgotten">;
  forceRelease(call: Sent): Promise<boolean>;
  inspect(call: Sent): Promise<State>;
}

/** The server's clock in tests that do not depend on it. */
export const NOW_US = 1_763_711_220_000_000;

/** A free lock without waiters. */
export const NOBODY: State = { holders: [], token: undefined, waiterCount: 0, waiters: [], ahead: undefined };

/** A reply that never comes. */
export function never<Result>(): Promise<Result> {
  return new Promise(() => {});
}

/** A failure after which a retry may succeed. */
export function lost(mayHaveRun = true): StoreError {
  return new StoreError("scripted", { mayHaveRun, transient: true, cause: new Error("connection lost") });
}

/** A promise that a test settles. */
export class Answer<Result> {
  resolve!: (result: Result) => void;
  reject!: (error: unknown) => void;
  readonly promise: Promise<Result> = new Promise((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

/** The current state of a promise. */
export interface Watched<Result> {
  state: "pending" | "fulfilled" | "rejected";
  value?: Result;
  error?: unknown;
}

/** Watches a promise without awaiting it. */
export function watch<Result>(promise: Promise<Result>): Watched<Result> {
  const watched: Watched<Result> = { state: "pending" };
  promise.then(
    (value) => Object.assign(watched, { state: "fulfilled", value }),
    (error: unknown) => Object.assign(watched, { state: "rejected", error }),
  );
  return watched;
}

/** A store that runs no scripts and only delivers messages. */
export class ScriptedStore implements Store {
  readonly kind = "scripted";
  /** See `Inbox.reopen`. */
  reopen: ((timeoutMs: number) => Promise<void>) | undefined;
  /** Replaced to make a subscription fail or hang. */
  subscribe: () => Promise<void> = () => Promise.resolve();
  subscriptions = 0;
  wasClosed = false;
  #push: ((message: string) => void) | undefined;
  readonly #listeners = new Set<(connection: "commands" | "inbox") => void>();

  run(): Promise<never> {
    return Promise.reject(new Error("no script is run here"));
  }

  async inbox(_channel: string, onMessage: (message: string) => void): Promise<Inbox> {
    this.subscriptions += 1;
    await this.subscribe();
    this.#push = onMessage;
    const { reopen } = this;
    return {
      ...(reopen && { reopen }),
      close: async () => {
        this.#push = undefined;
      },
    };
  }

  onReconnect(listener: (connection: "commands" | "inbox") => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.wasClosed = true;
  }

  /** The server publishes `message` to this client's inbox. */
  push(message: string): void {
    this.#push?.(message);
  }

  reconnect(connection: "commands" | "inbox"): void {
    for (const listener of this.#listeners) listener(connection);
  }

  static readonly unsupported = (): Promise<void> => Promise.reject(new UnsupportedError("scripted", "no inbox"));
}

/** One lock and its environment. By default the server grants immediately and confirms every request. */
export class ScriptedLock {
  readonly runtime = new ManualRuntime();
  readonly store = new ScriptedStore();
  readonly sent: Sent[] = [];
  readonly answers: Answers = {
    acquire: async () => ({ outcome: "granted", token: 7 }),
    extend: async () => "extended",
    release: async () => "released",
    leave: async () => {},
    adopt: async () => "adopted",
    forceRelease: async () => true,
    inspect: async () => NOBODY,
  };
  readonly session: Session;
  readonly protocol: LockProtocol;
  readonly lock: Lock;

  /**
   * @param options  `readPolicy` returns the server's eviction policy; without it, Holdfast does not ask;
   *                 `isCluster` adds an inbox per slot; `takesTurns` lets callers share a claim;
   *                 `isHandedOff` grants by message for a short time until `extend` confirms it;
   *                 `echo` enables the inbox check
   */
  constructor({
    commandTimeoutMs = 2_000,
    readPolicy,
    takesTurns = false,
    isCluster = false,
    isHandedOff = false,
    echo,
  }: {
    readonly commandTimeoutMs?: number;
    readonly readPolicy?: () => Promise<MemoryPolicy | undefined>;
    readonly takesTurns?: boolean;
    readonly isCluster?: boolean;
    readonly isHandedOff?: boolean;
    readonly echo?: Echo;
  } = {}) {
    if (isCluster) Object.assign(this.store, { shardInbox: this.store.inbox.bind(this.store) });
    this.session = new Session({
      store: this.store,
      runtime: this.runtime,
      prefix: "hf",
      clientId: this.runtime.newClientId(),
      commandTimeoutMs,
      records: { announce: () => Promise.resolve(), read: () => Promise.resolve(undefined) },
      closeStore: () => this.store.close(),
      ...(echo && { echo }),
      slotInboxes: SlotInboxes,
      guard: new Guard(readPolicy ? [evictionQuestion({ read: readPolicy, onHidden: () => {} })] : [], this.runtime),
    });
    this.protocol = {
      kind: "mutex",
      name: "scripted",
      key: "scripted",
      exported: {},
      acquire: (claim, enqueue, timeoutMs) => this.#answer("acquire", timeoutMs, claim, enqueue),
      extend: ({ claim }, _leaseMs, timeoutMs) => this.#answer("extend", timeoutMs, claim),
      ...(isHandedOff && { confirmHandOff: ({ claim }, timeoutMs) => this.#answer("extend", timeoutMs, claim) }),
      release: ({ claim }, timeoutMs) => this.#answer("release", timeoutMs, claim),
      leave: (claim, timeoutMs) => this.#answer("leave", timeoutMs, claim),
      adopt: (_from, { claim }, timeoutMs) => this.#answer("adopt", timeoutMs, claim),
      forceRelease: (_whose, timeoutMs) => this.#answer("forceRelease", timeoutMs),
      inspect: (_owner, timeoutMs) => this.#answer("inspect", timeoutMs),
    };
    this.lock = new Lock(
      this.session,
      this.protocol,
      { ...DEFAULTS, signal: undefined, amount: 1 },
      (hold) => new Lease(hold),
      takesTurns ? new LocalQueues(this.session) : undefined,
    );
  }

  /** The requests of one verb. */
  sentOf(verb: Verb): Sent[] {
    return this.sent.filter((call) => call.verb === verb);
  }

  /** When the requests of one verb were sent, in ms after `originMs`. */
  timesOf(verb: Verb, originMs: number): number[] {
    return this.sentOf(verb).map(({ atMs }) => atMs - originMs);
  }

  /** The number that messages use for the newest claim. */
  get lastNumber(): number {
    return this.sent.findLast(({ claim }) => claim !== undefined)?.claim?.number ?? 0;
  }

  /** Like a real store, fails if there is no reply within `timeoutMs`. */
  #answer<Chosen extends Verb>(
    verb: Chosen,
    timeoutMs: number,
    claim?: Claim,
    enqueue?: boolean,
  ): ReturnType<Answers[Chosen]> {
    const call: Sent = { verb, atMs: this.runtime.monotonicMs(), timeoutMs, claim, enqueue };
    this.sent.push(call);
    const answered = this.answers[verb](call) as Promise<unknown>;
    const timed = new Promise((resolve, reject) => {
      const deadline = this.runtime.startTimer(() => reject(lost()), timeoutMs, false);
      answered.then(resolve, reject).finally(() => deadline.cancel());
    });
    // The compiler cannot see that the reply type matches the verb.
    return timed as ReturnType<Answers[Chosen]>;
  }
}
