/** A simulated process: its clocks, timers and event loop, and whether it runs. */
import type { Runtime, Timer } from "holdfast/simulation";
import type { Event } from "./agenda.js";
import type { Random } from "./random.js";

/** What a process needs from the world. */
export interface Host {
  readonly nowMs: number;
  plan(atMs: number, what: string, happen: () => void): Event;
  trace(text: string): void;
  /** Called when the process runs something. */
  turned(process: SimulatedProcess): void;
}

/** How the clocks of a process run, relative to true time. */
export interface Clocks {
  /** The initial rate of both clocks, in milliseconds per true millisecond. */
  readonly rate: number;
  /** The slowest rate that they ever have. */
  readonly slowestRate: number;
  readonly wallStartMs: number;
  readonly monotonicStartMs: number;
}

/** How late a timer may fire on an idle event loop, in ms. */
export const TIMER_LATE_MS = 3;

/** One incarnation of a process. After a kill, another object continues. */
export class SimulatedProcess {
  readonly name: string;
  readonly incarnation: number;
  readonly runtime: Runtime;
  readonly #host: Host;
  readonly #random: Random;
  readonly #clocks: Clocks;
  /** Active timers, with the function that reschedules each one when the rate of the clocks changes. */
  readonly #timers = new Map<object, () => void>();
  readonly #held: (() => void)[] = [];
  #rate: number;
  #suspendedMs = 0;
  /** How far the monotonic clock has advanced under earlier rates. */
  #gainedMs = 0;
  #wallStepMs = 0;
  #clientCount = 0;
  #suspendedSinceMs: number | undefined;

  /** Whether it was killed. */
  isDead = false;
  /** Whether it is frozen. Events for it wait. */
  isFrozen = false;
  /** When its two clocks last diverged, by a step or a suspension. */
  partedAtMs: number = -Infinity;
  #suspendedAtMs = -Infinity;
  #steppedBackAtMs = -Infinity;

  /** When it last resumed after a freeze. */
  resumedAtMs: number = -Infinity;

  constructor(host: Host, name: string, incarnation: number, clocks: Clocks, random: Random) {
    this.name = name;
    this.incarnation = incarnation;
    this.#host = host;
    this.#clocks = clocks;
    this.#rate = clocks.rate;
    this.#random = random;
    this.runtime = {
      monotonicMs: () => this.monotonicMs(),
      wallMs: () => this.#wallMs(),
      random: () => random.next(),
      newClientId: () => this.#newId(),
      startTimer: (callback, delayMs) => this.startTimer(callback, delayMs, "timer"),
    };
  }

  /** The number of active timers. */
  get timerCount(): number {
    return this.#timers.size;
  }

  /** The time on its own monotonic clock. */
  monotonicMs(): number {
    const trueMs = this.#suspendedSinceMs ?? this.#host.nowMs;
    return this.#clocks.monotonicStartMs + (trueMs - this.#suspendedMs) * this.#rate + this.#gainedMs;
  }

  /** The most true milliseconds that may pass while the process measures `ms`. */
  longestTrueMs(ms: number): number {
    return ms / this.#clocks.slowestRate;
  }

  /** Runs `task` in this process: immediately, or when it resumes; never if it is dead. */
  enter(task: () => void): void {
    if (this.isDead) return;
    if (this.isFrozen || this.#held.length > 0) this.#held.push(task);
    else {
      this.#host.turned(this);
      task();
    }
  }

  /** Same as the timer of the runtime, with a name for the trace. */
  startTimer(callback: () => void, delayMs: number, what: string): Timer {
    const key = {};
    const dueMs = this.monotonicMs() + Math.max(1, Math.ceil(Math.min(delayMs, 1e12)));
    const lateMs = this.#random.chance(0.1) ? this.#random.between(0, TIMER_LATE_MS) : 0;
    let event: Event;
    const fire = (): void =>
      this.enter(() => {
        if (!this.#timers.has(key)) return;
        const leftMs = dueMs - this.monotonicMs();
        // After a suspension the monotonic clock is behind, and so is the timer.
        if (leftMs > 1e-6) event = this.#planIn(leftMs, what, fire);
        else {
          this.#timers.delete(key);
          callback();
        }
      });
    event = this.#planIn(dueMs - this.monotonicMs() + lateMs, what, fire);
    this.#timers.set(key, () => {
      event.isOff = true;
      event = this.#planIn(dueMs - this.monotonicMs() + lateMs, what, fire);
    });
    return {
      cancel: () => {
        this.#timers.delete(key);
        event.isOff = true;
      },
    };
  }

  /** Waits in this process. Never resolves if it is killed in the meantime. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.startTimer(resolve, delayMs, "program"));
  }

  /** Freezes it. With `suspended`, its monotonic clock stops too. */
  freeze(suspended: boolean): void {
    if (this.isDead || this.isFrozen) return;
    this.isFrozen = true;
    if (suspended) this.#suspendedAtMs = this.#host.nowMs;
    if (suspended) this.partedAtMs = Infinity;
    if (suspended) this.#suspendedSinceMs = this.#host.nowMs;
  }

  /** The process resumes and handles everything that arrived meanwhile, one task per turn. */
  resume(): void {
    if (!this.isFrozen) return;
    this.isFrozen = false;
    if (this.#suspendedSinceMs !== undefined) {
      this.#suspendedMs += this.#host.nowMs - this.#suspendedSinceMs;
      this.partedAtMs = this.#host.nowMs;
    }
    if (this.#suspendedSinceMs !== undefined) this.#suspendedAtMs = this.#host.nowMs;
    this.#suspendedSinceMs = undefined;
    this.resumedAtMs = this.#host.nowMs;
    this.#runHeld();
  }

  /** Kills it and its timers. */
  kill(): void {
    this.isDead = true;
    this.#timers.clear();
    this.#held.length = 0;
  }

  /** Changes the rate of both clocks, without a jump. */
  setRate(rate: number): void {
    const [monotonicMs, wallMs] = [this.monotonicMs(), this.#wallMs()];
    this.#rate = rate;
    this.#gainedMs += monotonicMs - this.monotonicMs();
    this.#wallStepMs += wallMs - this.#wallMs();
    for (const planAnew of [...this.#timers.values()]) planAnew();
  }

  /** Steps its wall clock. */
  stepWall(byMs: number): void {
    this.#wallStepMs += byMs;
    if (byMs < 0) this.#steppedBackAtMs = this.#host.nowMs;
    this.partedAtMs = this.#host.nowMs;
  }

  /**
   * Whether both clocks may be behind for one lease: one was stopped and the other was set back within its time.
   *
   * @param withinMs  the longest lease
   */
  mayLag(withinMs: number): boolean {
    const suspendedAtMs = this.#suspendedSinceMs === undefined ? this.#suspendedAtMs : this.#host.nowMs;
    return Math.abs(suspendedAtMs - this.#steppedBackAtMs) <= withinMs;
  }

  #wallMs(): number {
    return this.#clocks.wallStartMs + this.#host.nowMs * this.#rate + this.#wallStepMs;
  }

  #planIn(ownMs: number, what: string, fire: () => void): Event {
    const trueMs = this.#suspendedSinceMs === undefined ? this.#host.nowMs : this.#suspendedSinceMs;
    return this.#host.plan(Math.max(this.#host.nowMs, trueMs + ownMs / this.#rate), what, fire);
  }

  #runHeld(): void {
    if (this.isFrozen || this.isDead || this.#held.length === 0) return;
    this.#host.turned(this);
    this.#held[0]?.();
    this.#held.shift();
    this.#host.plan(this.#host.nowMs, `${this.name} catches up`, () => this.#runHeld());
  }

  #newId(): string {
    this.#clientCount += 1;
    const digits = String(this.#clientCount).padStart(6, "0");
    return `${this.name}-${this.incarnation}-`.padEnd(10, "_") + digits;
  }
}
