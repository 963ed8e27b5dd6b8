/** How long a caller waits: until its deadline, or until its signal aborts. The rule is the same alone and in a cohort. */
import { onAbort } from "./abort.js";
import type { Runtime, Timer } from "./runtime.js";
import { type Moment, now } from "./validity.js";

/** Which of the two ended it. */
export type DeadlineEnd = "deadline" | "abort";

/** Any: it does nothing when it fires but begin anew. */
const STAY_MS = 60_000;

/** See the file header. It keeps the process alive while its deadline runs. */
export class Deadline {
  readonly #runtime: Runtime;
  readonly #waitMs: number;
  readonly #onEnd: (end: DeadlineEnd) => void;
  /** When the wait began. */
  readonly startedAt: Moment;
  readonly #stopListening: (() => void) | undefined;
  #timer: Timer | undefined;
  #isExact = false;

  /** @param onEnd  called at most once for each of the two, and not after `stop` */
  constructor(
    runtime: Runtime,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal | undefined },
    onEnd: (end: DeadlineEnd) => void,
  ) {
    this.#runtime = runtime;
    this.#waitMs = waitMs;
    this.#onEnd = onEnd;
    this.startedAt = now(runtime);
    this.#stopListening = signal && onAbort(signal, () => onEnd("abort"));
  }

  /** How long the caller has waited, in ms. */
  waitedMs(): number {
    return this.#runtime.monotonicMs() - this.startedAt.monotonicMs;
  }

  /** What is left of `waitMs`; negative when it is over. */
  leftMs(): number {
    return this.#waitMs === Infinity ? Infinity : this.#waitMs - this.waitedMs();
  }

  /**
   * From now on the deadline ends the wait. Most acquires are over before it matters, so a timer is not set at once.
   *
   * @param leastMs  until it is called again without: the wait lasts so long from now in any case
   */
  start(leastMs = 0): void {
    if (this.#isExact || this.#waitMs === Infinity) return;
    this.#isExact = leastMs === 0;
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(() => this.#onEnd("deadline"), Math.max(leastMs, this.leftMs()), true);
  }

  /** As `start`; and who has no deadline keeps the process alive too, where no request of its own does. */
  stay(): void {
    if (this.#waitMs < Infinity) {
      this.start();
      return;
    }
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(() => this.stay(), STAY_MS, true);
  }

  /** The wait is over. */
  stop(): void {
    this.#timer?.cancel();
    this.#stopListening?.();
  }
}
