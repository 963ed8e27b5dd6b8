/**
 * What core needs of the process that it runs in: clocks, timers, random numbers, client ids.
 */

// --- Time and chance: all that core takes from outside besides the server's answers.
//
// Core reads no clock, sets no timer and draws no random number of its own, so that a simulation can supply
// all three and replay a run from its seed.

/** A running timer. */
export interface Timer {
  /** Stops it. A second call, or one after it fired, does nothing. */
  cancel(): void;
}

/** What core needs to know about time and chance. */
export interface Runtime {
  /** Milliseconds from an arbitrary start. Never goes back, but may stand still while the host is suspended. */
  monotonicMs(): number;

  /** Milliseconds since 1970. May be set back or forward at any time. */
  wallMs(): number;

  /** A number from 0 up to, and without, 1; for jitter. */
  random(): number;

  /** An id that no other client has had, in this process or any other: 16 characters from A–Z a–z 0–9 - _. */
  newClientId(): string;

  /**
   * Calls `callback` once, after `delayMs` at the earliest, however large that is.
   *
   * @param keepAlive  whether the process must not end before; true for whoever waits, false for held leases
   */
  startTimer(callback: () => void, delayMs: number, keepAlive: boolean): Timer;
}

/** Longest delay that Node's own timer accepts; a longer one would fire at once. */
const TIMER_MAX_MS = 2_147_483_647;

/** The machine's own clocks, timers and random source. */
export const systemRuntime: Runtime = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  random: () => Math.random(),
  // Not with a dash in front: on a command line, `--owner -x…` would look like another flag.
  newClientId: () => crypto().randomBytes(12).toString("base64url").replace(/^-/, "_"),
  startTimer: (callback, delayMs, keepAlive) => new SystemTimer(callback, delayMs, keepAlive),
};

/** How long timers of waiters may keep the event loop in one turn. */
const TURN_MS = 5;

/**
 * The timers of waiters, when they fire: thousands may be due at the same time, and each of them makes an error or sends a request.
 * Those that find the turn used up run in one of the next turns, so that replies and renewals do not wait for all of them.
 */
class WaiterTurns {
  #late: SystemTimer[] = [];
  /** Undefined if none has run in this turn. */
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

  /** It is due, and it is its turn. */
  run(): void {
    if (!this.#isCancelled) this.#callback();
  }

  /** A held lease must not wait behind waiters. */
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

// --- Modules of Node that take long to load, loaded when they are first used.
//
// `node:crypto` alone was a quarter of the time that importing this library takes. So was `node:process`: an import of it reads
// every property of `process`, and so makes the standard streams. What the library takes of `process` is therefore read from
// the global. A client library has loaded both by the time that the first lock is asked for.

/** @returns `node:crypto` */
export function crypto(): typeof import("node:crypto") {
  return process.getBuiltinModule("node:crypto");
}

/** How late a timer may be before it counts as lost, in ms. A busy event loop is later than that only rarely, which does no harm. */
const LOST_AFTER_MS = 1_000;

/**
 * One timer for a purpose that many share, such as looking at all leases.
 *
 * A timer may never fire: a test that fakes timers and restores the real ones forgets those that were set meanwhile. So the clock is
 * compared whenever the timer is needed, and one that should have fired long ago is replaced.
 *
 * It never keeps the process alive.
 */
export class SharedTimer {
  readonly #runtime: Runtime;
  readonly #onDue: () => void;
  #timer: Timer | undefined;
  #startedAtMs = 0;
  #dueAtMs = 0;

  constructor(runtime: Runtime, onDue: () => void) {
    this.#runtime = runtime;
    this.#onDue = onDue;
  }

  /** Whether it was started, has not fired, and can still be expected to. A clock that went back was a fake one. */
  get isRunning(): boolean {
    if (this.#timer === undefined) return false;
    const nowMs = this.#runtime.monotonicMs();
    return nowMs >= this.#startedAtMs && nowMs <= this.#dueAtMs + LOST_AFTER_MS;
  }

  /** Starts it, unless it is running. */
  ensure(delayMs: number): void {
    if (this.isRunning) return;
    // A lost timer is due already. It is started without a delay, so that a slow process does not wait longer.
    this.start(this.#timer === undefined ? delayMs : 0);
  }

  /** Starts it; one that is running is replaced. */
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

  /** Stops it. It can be started again. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/**
 * Keeps what many callers share out of the async context of the one that happened to start it.
 *
 * Node hands the context of `AsyncLocalStorage` on to every timer and connection that is made in it. A subscriber connection or a
 * timer that is made during the first acquire would carry the context of that request for as long as the process runs: abort
 * handlers of other requests would read the wrong store, and that store could never be collected.
 */
const { AsyncResource } = process.getBuiltinModule("node:async_hooks");

/** Made when the library is loaded, so that it has the context of no request. */
const atLoad = new AsyncResource("Holdfast");

/** Runs `work` in the async context in which the library was loaded; answers with what it returns. */
export function outsideRequests<Result>(work: () => Result): Result {
  return atLoad.runInAsyncScope(work);
}
