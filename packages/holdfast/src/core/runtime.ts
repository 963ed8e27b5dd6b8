/**
 * Time and chance: all that core takes from outside besides the server's answers.
 *
 * Core reads no clock, sets no timer and draws no random number of its own, so that a simulation can supply
 * all three and replay a run from its seed.
 */
import { crypto } from "./builtins.js";

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
