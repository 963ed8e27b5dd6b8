/** A lock whose server answers what a test says: the ports of core, honestly implemented, and a diary of what was sent. */

import { StoreError, UnsupportedError } from "../../src/core/errors.js";
import { evictionQuestion, Guard, type MemoryPolicy } from "../../src/core/guard.js";
import type { Echo } from "../../src/core/inbox-check.js";
import { Lease } from "../../src/core/lease.js";
import { LocalQueues } from "../../src/core/local-queue.js";
import { Lock } from "../../src/core/lock.js";
import { DEFAULTS } from "../../src/core/options.js";
import type { AcquireReply, Claim, LockProtocol, State } from "../../src/core/protocol.js";
import { Session } from "../../src/core/session.js";
import type { Inbox, Store } from "../../src/core/store.js";
import { ManualRuntime } from "./manual-runtime.js";

/** The calls that a lock makes. */
export type Verb = "acquire" | "extend" | "release" | "leave" | "adopt" | "forceRelease" | "inspect";

/** One call, and when it was made on the monotonic clock. */
export interface Sent {
  readonly verb: Verb;
  readonly atMs: number;
  readonly timeoutMs: number;
  readonly claim: Claim | undefined;
  readonly enqueue: boolean | undefined;
}

/** What a server answers to each verb; every function is called once for each call. */
export interface Answers {
  acquire(call: Sent): Promise<AcquireReply>;
  extend(call: Sent): Promise<"extended" | "unclaimed" | "claimed" | "forgotten">;
  release(call: Sent): Promise<"released" | "unclaimed" | "claimed" | "forgotten">;
  leave(call: Sent): Promise<void>;
  adopt(call: Sent): Promise<"adopted" | "unclaimed" | "claimed" | "forgotten">;
  forceRelease(call: Sent): Promise<boolean>;
  inspect(call: Sent): Promise<State>;
}

/** The server's clock where a test does not care. */
export const NOW_US = 1_763_711_220_000_000;

/** Nobody holds and nobody waits. */
export const NOBODY: State = { holders: [], token: undefined, waiterCount: 0, waiters: [], ahead: undefined };

/** An answer that never comes while nobody times it out. */
export function never<Result>(): Promise<Result> {
  return new Promise(() => {});
}

/** A failure after which the same call may succeed. */
export function lost(mayHaveRun = true): StoreError {
  return new StoreError("scripted", { mayHaveRun, transient: true, cause: new Error("connection lost") });
}

/** A promise in the hands of a test. */
export class Answer<Result> {
  resolve!: (result: Result) => void;
  reject!: (error: unknown) => void;
  readonly promise: Promise<Result> = new Promise((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

/** What has become of a promise so far. */
export interface Watched<Result> {
  state: "pending" | "fulfilled" | "rejected";
  value?: Result;
  error?: unknown;
}

/** Looks at a promise without waiting for it. */
export function watch<Result>(promise: Promise<Result>): Watched<Result> {
  const watched: Watched<Result> = { state: "pending" };
  promise.then(
    (value) => Object.assign(watched, { state: "fulfilled", value }),
    (error: unknown) => Object.assign(watched, { state: "rejected", error }),
  );
  return watched;
}

/** A store that runs nothing; it only carries messages. */
export class ScriptedStore implements Store {
  readonly kind = "scripted";
  /** As `Inbox.reopen`. */
  reopen: ((timeoutMs: number) => Promise<void>) | undefined;
  /** Replaced to make a subscription fail or hang. */
  subscribe: () => Promise<void> = () => Promise.resolve();
  subscriptions = 0;
  isClosed = false;
  #push: ((message: string) => void) | undefined;
  #reconnected: ((connection: "commands" | "inbox") => void) | undefined;

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
    this.#reconnected = listener;
    return () => {
      this.#reconnected = undefined;
    };
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }

  /** The server publishes `message` to this client's inbox. */
  push(message: string): void {
    this.#push?.(message);
  }

  reconnect(connection: "commands" | "inbox"): void {
    this.#reconnected?.(connection);
  }

  static readonly unsupported = (): Promise<void> => Promise.reject(new UnsupportedError("scripted", "no inbox"));
}

/** One lock, and everything around it. The server grants at once and confirms everything, until told otherwise. */
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
   * @param options  `readPolicy` answers what the server does when its memory is full; without it nobody asks;
   *                 `isCluster` has an inbox for each slot besides that of the client; `takesTurns` lets callers share a claim;
   *                 `isHandedOff` grants by message for a short time only, until that is confirmed by `extend`;
   *                 `echo` checks the inbox, which nothing does without it
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

  /** The calls of one verb. */
  sentOf(verb: Verb): Sent[] {
    return this.sent.filter((call) => call.verb === verb);
  }

  /** When the calls of one verb were made, counted from `originMs`. */
  timesOf(verb: Verb, originMs: number): number[] {
    return this.sentOf(verb).map(({ atMs }) => atMs - originMs);
  }

  /** The number by which messages name the newest claim. */
  get lastNumber(): number {
    return this.sent.findLast(({ claim }) => claim !== undefined)?.claim?.number ?? 0;
  }

  /** As a store does it: an answer that has not come after `timeoutMs` is a failure. */
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
    // The compiler cannot follow that each verb's answer goes back to the caller of that verb.
    return timed as ReturnType<Answers[Chosen]>;
  }
}
