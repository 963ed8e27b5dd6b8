import { StoreError, UnsupportedError } from "../core/errors.js";
import { show, unknownOption } from "../core/keys.js";
import { isAbortSignal, nativeSignal, onAbort } from "../core/options.js";
import type { Claim } from "../core/protocol.js";
import type { Timer } from "../core/runtime.js";
import type { Occupant, Session } from "../core/session.js";
import type { Inbox } from "../core/store.js";

/**
 * Observes a state on the server: reads it, subscribes, and reads it again after each message and whenever one may
 * have been lost.
 *
 * Invariants:
 * - However many messages are lost, the last yielded state matches the server after the next successful read.
 * - An observer never yields the same state twice in a row.
 * - An observer keeps only the newest state, however slow its reader is.
 */

/** How often to read unless a change is expected sooner. Finds changes whose message was lost. */
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
  /** Whether a state is to be yielded after the last one that was yielded. */
  isNews(current: State, last: State): boolean;
  /** Time until the state may change without a message, in ms; Infinity if it never does. */
  changesInMs(current: State): number;
}

/** Options of `observe`. */
export interface ObserveOptions {
  /** When the signal aborts, the observation ends and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Yields the current state, then each state that differs from the last one, mapped by `describe`. May skip states that
 * are quickly replaced. Ends when the Holdfast instance is closed.
 *
 * @throws ClosedError  the Holdfast instance was closed before the first state was requested
 * @throws StoreError  a failure that retrying cannot fix
 * @throws the signal's reason, when it aborts
 * @throws TypeError  invalid options
 */
export function observe<State, Shown>(
  observed: Observed<State>,
  options: ObserveOptions,
  describe: (is: State) => Shown | Promise<Shown>,
): AsyncGenerator<Shown, void, undefined> {
  let observer: Observer<State> | undefined;
  const states = (async function* (): AsyncGenerator<Shown, void, undefined> {
    const signal = signalOf(options);
    signal?.throwIfAborted();
    observer = new Observer(observed, signal && nativeSignal(signal));
    try {
      for (;;) {
        const next = await observer.next();
        if (next === undefined) return;
        yield await describe(next.state);
      }
    } finally {
      observer.stop();
    }
  })();
  // A generator queues its calls, so `return` and `throw` would have to wait for the next state. Stop the observer
  // first.
  const end = states.return.bind(states);
  const fail = states.throw.bind(states);
  states.return = (value) => {
    observer?.stop();
    return end(value);
  };
  states.throw = (error) => {
    observer?.stop();
    return fail(error);
  };
  return states;
}

/** Checks the options, and returns the signal. */
function signalOf(options: ObserveOptions): AbortSignal | undefined {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options must be an object; got ${show(options)}`);
  }
  if (isAbortSignal(options)) throw new TypeError("options must be an object such as { signal }; got an AbortSignal");
  const { signal, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw unknownOption(unknown, ["signal"]);
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new TypeError(`signal must be an AbortSignal; got ${show(signal)}`);
  }
  return signal;
}

/** A state that was read. */
interface Read<State> {
  readonly state: State;
}

interface Reader<State> {
  readonly resolve: (result: Read<State> | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Reads the state whenever it may have changed, and serves one reader at a time. */
class Observer<State> implements Occupant {
  readonly #observed: Observed<State>;
  readonly #session: Session;
  readonly #removeAbortListener: (() => void) | undefined;
  readonly #claim: Claim;
  /** The subscription; `unsupported` if the client can never subscribe. */
  #inbox: Inbox | "opening" | "unsupported" | undefined;
  #isReading = false;
  #readAgain = false;
  /** The newest state. Undefined until the first reply. */
  #newest: Read<State> | undefined;
  #yielded: Read<State> | undefined;
  #reader: Reader<State> | undefined;
  #end: { readonly error: unknown } | "done" | undefined;
  #timer: Timer | undefined;

  /** @throws ClosedError */
  constructor(observed: Observed<State>, signal: AbortSignal | undefined) {
    this.#observed = observed;
    this.#session = observed.session;
    // No request uses this claim. It only registers the observer, so that the session reports reconnects and closing.
    this.#claim = this.#session.newClaim(observed.name, 1, 1, "");
    this.#session.admit(this.#claim, this);
    this.#removeAbortListener = signal && onAbort(signal, () => this.#finish({ error: signal.reason }));
    this.#refresh();
  }

  /**
   * The next state that differs from the last one; undefined if the observation was stopped.
   *
   * @throws the error that ended the observation
   */
  next(): Promise<Read<State> | undefined> {
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
      this.#settleReader();
    });
  }

  stop(): void {
    this.#finish("done");
  }

  granted(): void {}

  revoked(): void {}

  recheck(): void {}

  reconnected(): void {
    this.#refresh();
  }

  async close(): Promise<void> {
    this.#finish("done");
  }

  /** Subscribes, if not yet subscribed and if the client supports it, and then reads the state. */
  #refresh(): void {
    if (this.#inbox === undefined) this.#subscribe();
    void this.#read();
  }

  #subscribe(): void {
    this.#inbox = "opening";
    const onMessage = (): void => void this.#read();
    this.#session.store.inbox(this.#observed.channel, onMessage, this.#session.commandTimeoutMs).then(
      (inbox) => {
        this.#inbox = inbox;
        if (this.#end === undefined) void this.#read();
        else void inbox.close();
      },
      (error: unknown) => {
        this.#inbox = error instanceof UnsupportedError ? "unsupported" : undefined;
      },
    );
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
        const state = await this.#observed.read(this.#session.commandTimeoutMs);
        this.#newest = { state };
        const recheckMs = typeof this.#inbox === "object" ? RECHECK_MS : POLL_MS;
        this.#refreshIn(Math.min(this.#observed.changesInMs(state), recheckMs));
        this.#settleReader();
      } catch (error) {
        if (!(error instanceof StoreError) || !error.transient) this.#finish({ error });
        this.#refreshIn(POLL_MS);
      }
    } while (this.#readAgain && this.#end === undefined);
    this.#isReading = false;
  }

  #refreshIn(delayMs: number): void {
    if (this.#end !== undefined) return;
    const jitterMs = this.#session.runtime.random() * JITTER_MS;
    this.#timer?.cancel();
    // Keeps the process alive, because a reader may be waiting for the next state.
    this.#timer = this.#session.runtime.startTimer(() => this.#refresh(), delayMs + jitterMs, true);
  }

  /** Resolves the pending `next` call if there is a new state or the observation has ended. */
  #settleReader(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    if (this.#end !== undefined) {
      this.#reader = undefined;
      if (this.#end === "done") reader.resolve(undefined);
      else reader.reject(this.#end.error);
      this.#end = "done";
      return;
    }
    const newest = this.#newest;
    const last = this.#yielded;
    if (newest === undefined || (last !== undefined && !this.#observed.isNews(newest.state, last.state))) return;
    this.#reader = undefined;
    this.#yielded = newest;
    reader.resolve(newest);
  }

  #finish(end: { readonly error: unknown } | "done"): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#timer?.cancel();
    this.#removeAbortListener?.();
    this.#session.dismiss(this.#claim, this);
    if (typeof this.#inbox === "object") void this.#inbox.close();
    this.#settleReader();
  }
}
