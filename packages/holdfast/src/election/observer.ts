import { ClosedError, StoreError, UnsupportedError } from "../core/errors.js";
import { show, unknownOption } from "../core/keys.js";
import { isAbortSignal, nativeSignal, onAbort } from "../core/options.js";
import type { Claim } from "../core/protocol.js";
import type { Timer } from "../core/runtime.js";
import type { Occupant, Session } from "../core/session.js";
import type { Inbox } from "../core/store.js";

/**
 * Observes a state on the server: reads it, subscribes, and reads it again when a message may have been lost.
 *
 * Invariants:
 * - However many messages were lost, the last yielded state matches the server as soon as the server can be read again.
 * - It never yields a state that is not news.
 * - It keeps only the newest state, however slow its reader is.
 */

/** How often to read if no earlier change is expected, in case a message was lost unnoticed. */
const RECHECK_MS = 30_000;
/** How often to read without a subscription, or after a failed read. */
const POLL_MS = 1_000;
const JITTER_MS = 20;

/** What to observe. */
export interface Observed<State> {
  readonly session: Session;
  readonly name: string;
  /** A message on this channel means that the state may have changed. */
  readonly channel: string;
  /** @throws StoreError */
  read(timeoutMs: number): Promise<State>;
  /** Whether to yield `is` after `last`. */
  isNews(is: State, last: State): boolean;
  /** Time until the state may change without a message, in ms; Infinity if it never does. */
  changesInMs(is: State): number;
}

/** Options of `observe`. */
export interface ObserveOptions {
  /** Ends the observation, which then rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Yields the current state, then each state that is news, mapped by `describe`. States may be skipped.
 *
 * @throws ClosedError, StoreError, the signal's reason  when that ends the observation
 * @throws TypeError  invalid options
 */
export function observe<State, Shown>(
  observed: Observed<State>,
  options: ObserveOptions,
  describe: (is: State) => Shown | Promise<Shown>,
): AsyncGenerator<Shown, void, undefined> {
  let stop = (): void => {};
  const states = follow(observed, options, describe, (observer) => {
    stop = () => observer.stop();
  });
  // A generator queues its calls, so `return` and `throw` would have to wait for the next state. Stop the observer first.
  const end = states.return.bind(states);
  const fail = states.throw.bind(states);
  states.return = (value) => {
    stop();
    return end(value);
  };
  states.throw = (error) => {
    stop();
    return fail(error);
  };
  return states;
}

async function* follow<State, Shown>(
  observed: Observed<State>,
  options: ObserveOptions,
  describe: (is: State) => Shown | Promise<Shown>,
  begun: (observer: Observer<State>) => void,
): AsyncGenerator<Shown, void, undefined> {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options must be an object; got ${show(options)}`);
  }
  const { signal, ...others } = options;
  const [unknown] = isAbortSignal(options) ? ["an AbortSignal in place of { signal }"] : Object.keys(others);
  if (unknown !== undefined) throw unknownOption(unknown, ["signal"]);
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new TypeError(`signal must be an AbortSignal; got ${show(signal)}`);
  }
  signal?.throwIfAborted();
  const observer = new Observer(observed, signal && nativeSignal(signal));
  begun(observer);
  try {
    for (;;) {
      const next = await observer.next();
      if (next.done) return;
      yield await describe(next.value);
    }
  } finally {
    observer.stop();
  }
}

interface Reader<State> {
  readonly resolve: (result: IteratorResult<State, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/** Serves one reader at a time. */
class Observer<State> implements Occupant {
  readonly #observed: Observed<State>;
  readonly #session: Session;
  readonly #signal: AbortSignal | undefined;
  readonly #stopListening: (() => void) | undefined;
  readonly #claim: Claim;
  #inbox: Inbox | undefined;
  #isOpening = false;
  #canListen = true;
  #isReading = false;
  #readAgain = false;
  /** The newest state. Undefined until the first reply. */
  #newest: { readonly is: State } | undefined;
  #handedOut: { readonly is: State } | undefined;
  #reader: Reader<State> | undefined;
  #end: { readonly error: unknown } | "done" | undefined;
  #timer: Timer | undefined;

  /** @throws ClosedError */
  constructor(observed: Observed<State>, signal: AbortSignal | undefined) {
    this.#observed = observed;
    this.#session = observed.session;
    this.#signal = signal;
    // No request uses this id. It only registers the observer with the session, which reports reconnects and the close.
    this.#claim = this.#session.newClaim(observed.name, 1, 1, "");
    this.#session.admit(this.#claim, this);
    this.#stopListening = signal && onAbort(signal, this.#onAbort);
    this.#listen();
    void this.#read();
  }

  /** The next state that is news compared to the last one. @throws the error that ended the observation */
  next(): Promise<IteratorResult<State, undefined>> {
    return new Promise((resolve, reject) => {
      this.#reader?.resolve({ done: true, value: undefined });
      this.#reader = { resolve, reject };
      this.#hand();
    });
  }

  stop(): void {
    this.#finish("done");
  }

  granted(): void {}

  revoked(): void {}

  recheck(): void {}

  reconnected(): void {
    this.#listen();
    void this.#read();
  }

  async close(): Promise<void> {
    this.#finish({ error: new ClosedError(this.#observed.name) });
  }

  readonly #onAbort = (): void => {
    this.#finish({ error: this.#signal?.reason });
  };

  #listen(): void {
    if (this.#inbox !== undefined || this.#isOpening || !this.#canListen) return;
    this.#isOpening = true;
    const onMessage = (): void => void this.#read();
    this.#session.store
      .inbox(this.#observed.channel, onMessage, this.#session.commandTimeoutMs)
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
        const is = await this.#observed.read(this.#session.commandTimeoutMs);
        this.#newest = { is };
        this.#askIn(Math.min(this.#observed.changesInMs(is), this.#inbox === undefined ? POLL_MS : RECHECK_MS));
        this.#hand();
      } catch (error) {
        if (!(error instanceof StoreError) || !error.transient) this.#finish({ error });
        this.#askIn(POLL_MS);
      }
    } while (this.#readAgain && this.#end === undefined);
    this.#isReading = false;
  }

  #askIn(delayMs: number): void {
    if (this.#end !== undefined) return;
    const jitterMs = this.#session.runtime.random() * JITTER_MS;
    const ask = (): void => {
      this.#listen();
      void this.#read();
    };
    this.#timer?.cancel();
    // Keeps the process alive, because a reader may wait for the next state.
    this.#timer = this.#session.runtime.startTimer(ask, delayMs + jitterMs, true);
  }

  /** Resolves the pending `next` call if there is news or the observation has ended. */
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
    const last = this.#handedOut;
    if (newest === undefined || (last !== undefined && !this.#observed.isNews(newest.is, last.is))) return;
    this.#reader = undefined;
    this.#handedOut = newest;
    reader.resolve({ done: false, value: newest.is });
  }

  #finish(end: { readonly error: unknown } | "done"): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#timer?.cancel();
    this.#stopListening?.();
    this.#session.dismiss(this.#claim, this);
    void this.#inbox?.close();
    this.#hand();
  }
}
