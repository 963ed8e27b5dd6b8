/**
 * Follows who leads an election: reads, listens, and reads again when it may have missed something.
 *
 * Invariants: what it hands out last is what the server says, however many messages were lost, as soon as it can ask
 * again; it never hands out the same state twice in a row, nor a term below one that it knew; and it keeps only the newest,
 * however slow its reader is.
 */
import type { Engine, Occupant } from "../core/engine.js";
import { ClosedError, StoreError, UnsupportedError } from "../core/errors.js";
import type { Timer } from "../core/runtime.js";
import type { Claim } from "../core/steps.js";
import type { Inbox } from "../core/store.js";
import type { ElectionSteps, LeaderRecord } from "./steps.js";

/** Without a leader, or with one whose lease is long, it asks this often, in case a message was lost without a trace. */
const RECHECK_MS = 30_000;
/** A client that cannot listen asks this often. */
const POLL_MS = 1_000;
/** The lease must be over on the server too when it asks at its end. */
const AFTER_LEASE_MS = 5;
const JITTER_MS = 20;

interface Reader {
  readonly resolve: (result: IteratorResult<LeaderRecord | undefined, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/** See the file header. One reader at a time. */
export class LeaderObserver implements Occupant {
  readonly #engine: Engine;
  readonly #steps: ElectionSteps;
  readonly #signal: AbortSignal | undefined;
  readonly #claim: Claim;
  #inbox: Inbox | undefined;
  #isOpening = false;
  #canListen = true;
  #isReading = false;
  #readAgain = false;
  /** The newest state; its `is` is undefined when nobody leads. Undefined until the first answer. */
  #newest: { readonly is: LeaderRecord | undefined } | undefined;
  #handedOut: { readonly is: LeaderRecord | undefined } | undefined;
  #lastTerm = 0;
  #reader: Reader | undefined;
  #end: { readonly error: unknown } | "done" | undefined;
  #timer: Timer | undefined;

  /** @throws ClosedError */
  constructor(engine: Engine, steps: ElectionSteps, signal: AbortSignal | undefined) {
    this.#engine = engine;
    this.#steps = steps;
    this.#signal = signal;
    // It asks for nothing under this id: the id makes it known to the engine, which tells it of reconnects and the end.
    this.#claim = engine.newClaim(steps.name, 1, 1, "");
    engine.admit(this.#claim, this);
    signal?.addEventListener("abort", this.#onAbort);
    this.#listen();
    void this.#read();
  }

  /** The next state that differs from the last one; undefined when nobody leads. @throws as the observation ended */
  next(): Promise<IteratorResult<LeaderRecord | undefined, undefined>> {
    return new Promise((resolve, reject) => {
      this.#reader?.resolve({ done: true, value: undefined });
      this.#reader = { resolve, reject };
      this.#hand();
    });
  }

  /** Stops. */
  stop(): void {
    this.#finish("done");
  }

  granted(): void {}

  revoked(): void {}

  poked(): void {}

  reconnected(): void {
    this.#listen();
    void this.#read();
  }

  async close(): Promise<void> {
    this.#finish({ error: new ClosedError(this.#steps.name) });
  }

  readonly #onAbort = (): void => {
    this.#finish({ error: this.#signal?.reason });
  };

  #listen(): void {
    if (this.#inbox !== undefined || this.#isOpening || !this.#canListen) return;
    this.#isOpening = true;
    const onMessage = (): void => void this.#read();
    this.#engine.store
      .inbox(this.#steps.channel, onMessage, this.#engine.commandTimeoutMs)
      .then(
        (inbox) => {
          this.#inbox = inbox;
          if (this.#end === undefined) void this.#read();
          else void inbox.close();
        },
        (error: unknown) => {
          if (error instanceof UnsupportedError) this.#canListen = false;
        },
      )
      .finally(() => {
        this.#isOpening = false;
      });
  }

  async #read(): Promise<void> {
    if (this.#end !== undefined) return;
    if (this.#isReading) {
      this.#readAgain = true;
      return;
    }
    this.#isReading = true;
    do {
      this.#readAgain = false;
      this.#timer?.cancel();
      try {
        let is = await this.#steps.leader(this.#engine.commandTimeoutMs);
        // A server that came back with old data shows a leader of the past, which leads no longer.
        if (is !== undefined && is.term < this.#lastTerm) is = undefined;
        this.#lastTerm = is?.term ?? this.#lastTerm;
        this.#newest = { is };
        this.#askIn(this.#recheckInMs(is));
        this.#hand();
      } catch (error) {
        if (!(error instanceof StoreError) || !error.transient) this.#finish({ error });
        this.#askIn(POLL_MS);
      }
    } while (this.#readAgain && this.#end === undefined);
    this.#isReading = false;
  }

  #recheckInMs(is: LeaderRecord | undefined): number {
    const longestMs = this.#inbox === undefined ? POLL_MS : RECHECK_MS;
    return Math.min(is === undefined ? Infinity : is.leaseLeftMs + AFTER_LEASE_MS, longestMs);
  }

  #askIn(delayMs: number): void {
    if (this.#end !== undefined) return;
    const jitterMs = this.#engine.runtime.random() * JITTER_MS;
    const ask = (): void => {
      this.#listen();
      void this.#read();
    };
    this.#timer?.cancel();
    // Whoever waits for the next state keeps the process alive.
    this.#timer = this.#engine.runtime.startTimer(ask, delayMs + jitterMs, true);
  }

  /** Gives the reader what is new to it, or the end. */
  #hand(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    if (this.#end !== undefined) {
      this.#reader = undefined;
      if (this.#end === "done") {
        reader.resolve({ done: true, value: undefined });
      } else {
        const { error } = this.#end;
        this.#end = "done";
        reader.reject(error);
      }
      return;
    }
    const newest = this.#newest;
    if (newest === undefined || (this.#handedOut !== undefined && isSame(newest.is, this.#handedOut.is))) return;
    this.#reader = undefined;
    this.#handedOut = newest;
    reader.resolve({ done: false, value: newest.is });
  }

  #finish(end: { readonly error: unknown } | "done"): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#timer?.cancel();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#engine.dismiss(this.#claim, this);
    void this.#inbox?.close();
    this.#hand();
  }
}

function isSame(a: LeaderRecord | undefined, b: LeaderRecord | undefined): boolean {
  return a?.term === b?.term && a?.owner === b?.owner && a?.value === b?.value;
}
