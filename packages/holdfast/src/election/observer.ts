import { ClosedError, StoreError, UnsupportedError } from "../core/errors.js";
import { show, unknownOption } from "../core/keys.js";
import { isAbortSignal, nativeSignal, onAbort } from "../core/options.js";
import type { Claim } from "../core/protocol.js";
import type { Timer } from "../core/runtime.js";
import type { Occupant, Session } from "../core/session.js";
import type { Inbox } from "../core/store.js";

/**
 * Follows something that changes on the server: reads, listens, and reads again when it may have missed something.
 *
 * Invariants: what it hands out last is what the server says, however many messages were lost, as soon as it can ask
 * again; it never hands out what is no news; and it keeps only the newest, however slow its reader is.
 */

/** If nothing says that it will change sooner it asks this often, in case a message was lost without a trace. */
const RECHECK_MS = 30_000;
/** A client that cannot listen asks this often. */
const POLL_MS = 1_000;
const JITTER_MS = 20;

/** What is followed. */
export interface Observed<State> {
  readonly session: Session;
  readonly name: string;
  /** Where a message says that it may have changed. */
  readonly channel: string;
  /** @throws StoreError */
  read(timeoutMs: number): Promise<State>;
  /** Whether it is to be handed out after `last`. */
  isNews(is: State, last: State): boolean;
  /** When it may change without a message, in ms; Infinity if it never does. */
  changesInMs(is: State): number;
}

/** How to observe. */
export interface ObserveOptions {
  /** Ends it, and rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The present state, then each that is news, as `describe` puts it; some may be skipped.
 *
 * @throws ClosedError, StoreError, the signal's reason  as the observation ends
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
  // A generator takes calls one after the other: by itself it would stop only when the next state is known.
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

/** See the file header. One reader at a time. */
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
  /** The newest state. Undefined until the first answer. */
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
    // It asks for nothing under this id: the id makes it known to the session, which tells it of reconnects and the end.
    this.#claim = this.#session.newClaim(observed.name, 1, 1, "");
    this.#session.admit(this.#claim, this);
    this.#stopListening = signal && onAbort(signal, this.#onAbort);
    this.#listen();
    void this.#read();
  }

  /** The next state that is news after the last one. @throws as the observation ended */
  next(): Promise<IteratorResult<State, undefined>> {
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
    // Whoever waits for the next state keeps the process alive.
    this.#timer = this.#session.runtime.startTimer(ask, delayMs + jitterMs, true);
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
