/**
 * The runtime that core needs: clocks, timers, random numbers and client ids.
 */

// --- Time and randomness.
//
// Core gets clocks, timers and random numbers only from here, so that a simulation can supply all three and replay a
// run from its seed.

/** A running timer. */
export interface Timer {
  /** Stops the timer. A second call, or a call after the timer has fired, does nothing. */
  cancel(): void;
}

/** Clocks, timers and random numbers. */
export interface Runtime {
  /** Milliseconds since an arbitrary start. Never goes back, but may stop while the host is suspended. */
  monotonicMs(): number;

  /** Milliseconds since 1970. May jump back or forward at any time. */
  wallMs(): number;

  /** A random number from 0 (inclusive) to 1 (exclusive), for jitter. */
  random(): number;

  /** A new id that no client in any process has had: 16 characters from A–Z a–z 0–9 - _. */
  newClientId(): string;

  /**
   * Calls `callback` once, after `delayMs` at the earliest.
   *
   * @param delayMs    delay in ms, of any size
   * @param keepAlive  whether the timer keeps the process alive: true for waiters, false for held leases
   */
  startTimer(callback: () => void, delayMs: number, keepAlive: boolean): Timer;
}

/** Longest delay that Node's timers accept, in ms. A timer with a longer delay would fire immediately. */
const TIMER_MAX_MS = 2_147_483_647;

/** The clocks, timers and random source of this process. */
export const systemRuntime: Runtime = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  random: () => Math.random(),
  // The id must not begin with a dash: on a command line, `--owner -x…` would look like another flag.
  newClientId: () => crypto().randomBytes(12).toString("base64url").replace(/^-/, "_"),
  startTimer: (callback, delayMs, keepAlive) => new SystemTimer(callback, delayMs, keepAlive),
};

/** How long timers of waiters may occupy the event loop in one turn, in ms. */
const TURN_MS = 5;

/**
 * Spreads due timers of waiters over several turns of the event loop. Thousands may be due at the same time, and each
 * creates an error or sends a request. When the time for one turn is used up, the remaining timers run in later turns,
 * so that replies and renewals do not wait for all of them.
 */
class WaiterTurns {
  #late: SystemTimer[] = [];
  /** End of the current turn on the monotonic clock, in ms; undefined if no timer has run in this turn. */
  #endsAtMs: number | undefined;

  run(timer: SystemTimer): void {
    if (this.#endsAtMs === undefined) this.#begin();
    if (this.#isOver()) this.#late.push(timer);
    else timer.run();
  }

  #begin(): void {
    this.#endsAtMs = performance.now() + TURN_MS;
    setImmediate(() => this.#next());
  }

  #isOver(): boolean {
    return this.#late.length > 0 || performance.now() >= (this.#endsAtMs ?? Infinity);
  }

  #next(): void {
    const late = this.#late;
    this.#late = [];
    this.#endsAtMs = undefined;
    if (late.length === 0) return;
    this.#begin();
    for (const timer of late) this.run(timer);
  }
}

const waiterTurns = new WaiterTurns();

class SystemTimer implements Timer {
  readonly #callback: () => void;
  readonly #keepAlive: boolean;
  #timeout: NodeJS.Timeout;
  #isCancelled = false;

  constructor(callback: () => void, delayMs: number, keepAlive: boolean) {
    this.#callback = callback;
    this.#keepAlive = keepAlive;
    this.#timeout = this.#start(delayMs);
  }

  cancel(): void {
    this.#isCancelled = true;
    clearTimeout(this.#timeout);
  }

  /** Calls the callback, unless the timer was canceled. */
  run(): void {
    if (!this.#isCancelled) this.#callback();
  }

  /** Runs timers of held leases immediately, because a lease must not wait behind waiters. */
  #due(): void {
    if (this.#keepAlive) waiterTurns.run(this);
    else this.run();
  }

  #start(delayMs: number): NodeJS.Timeout {
    const timeout =
      delayMs > TIMER_MAX_MS
        ? setTimeout(() => {
            this.#timeout = this.#start(delayMs - TIMER_MAX_MS);
          }, TIMER_MAX_MS)
        : setTimeout(() => this.#due(), Math.max(1, Math.ceil(delayMs)));
    if (!this.#keepAlive) timeout.unref();
    return timeout;
  }
}

// --- Node modules that are slow to load. They are loaded on first use, or not at all.
//
// If loaded eagerly, `node:crypto` accounts for a quarter of the time to import this library. Importing `node:process`
// takes another quarter, because it reads every property of `process` and thereby creates the standard streams. So
// the library uses the global `process`. A client library has usually loaded both modules before the first lock is
// requested, so loading `node:crypto` on first use usually costs nothing.

/** Returns `node:crypto`. Loads it on the first call. */
export function crypto(): typeof import("node:crypto") {
  return process.getBuiltinModule("node:crypto");
}

/**
 * A timer that is more than this many ms late counts as lost. A blocked event loop can also delay a timer that long,
 * which is rare and harmless.
 */
const LOST_AFTER_MS = 1_000;

/**
 * One timer that many objects share, for example to check all leases.
 *
 * A timer might never fire: a test that fakes timers and then restores the real ones drops timers set in between. So
 * each use checks the clock, and replaces a timer that should have fired long ago.
 *
 * The timer never keeps the process alive.
 */
export class SharedTimer {
  readonly #runtime: Runtime;
  readonly #onDue: () => void;
  #timer: Timer | undefined;
  #startedAtMs = 0;
  #dueAtMs = 0;

  /** @param onDue  called when the timer fires */
  constructor(runtime: Runtime, onDue: () => void) {
    this.#runtime = runtime;
    this.#onDue = onDue;
  }

  /**
   * Whether the timer was started, has not fired, and is not lost. If the clock went backward, a real clock has
   * replaced a fake one, and the timer is lost.
   */
  get isRunning(): boolean {
    if (this.#timer === undefined) return false;
    const nowMs = this.#runtime.monotonicMs();
    return nowMs >= this.#startedAtMs && nowMs <= this.#dueAtMs + LOST_AFTER_MS;
  }

  /** Starts the timer with a delay in ms, unless it is running. Restarts a lost timer without a delay. */
  ensure(delayMs: number): void {
    if (this.isRunning) return;
    // A lost timer is overdue already, so start it without a delay.
    this.start(this.#timer === undefined ? delayMs : 0);
  }

  /** Starts the timer with a delay in ms. Replaces a running one. */
  start(delayMs: number): void {
    this.cancel();
    this.#startedAtMs = this.#runtime.monotonicMs();
    this.#dueAtMs = this.#startedAtMs + delayMs;
    const onDue = (): void => {
      this.#timer = undefined;
      this.#onDue();
    };
    this.#timer = outsideRequests(() => this.#runtime.startTimer(onDue, delayMs, false));
  }

  /** Stops the timer. It can be started again. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/*
 * Shared timers and connections must not run in the async context of the caller that happens to create them.
 *
 * Node passes the context of `AsyncLocalStorage` to every timer and connection created in it. A subscriber connection
 * or a timer created during the first acquire would keep the context of that request for the life of the process. Abort
 * handlers of other requests would read the wrong store, and that store could never be garbage-collected.
 */
const { AsyncResource } = process.getBuiltinModule("node:async_hooks");

/** Created when the library is loaded, so that it does not carry the context of any request. */
const atLoad = new AsyncResource("Holdfast");

/** Runs `work` in the async context in which the library was loaded, and returns its result. */
export function outsideRequests<Result>(work: () => Result): Result {
  return atLoad.runInAsyncScope(work);
}
