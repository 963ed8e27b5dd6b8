/**
 * Confirms grants by message when their sections turn out not to be short.
 *
 * One timer serves all of them, because most sections end before their confirmation is due. The timer may be set for a later one when
 * an earlier one is added. That delays the earlier one by at most the time until the timer fires, 300 ms.
 */
import type { Runtime } from "./runtime.js";
import { SharedTimer } from "./shared-timer.js";
import { SHORT_HOLD_MS } from "./short-holds.js";
import type { Moment } from "./validity.js";

/** Permits are granted to many at a time: their confirmations need not come at the same moment. */
const JITTER_MS = 50;

/** A grant that its holder has not confirmed. */
export interface Unconfirmed {
  /** When it is to be confirmed, on the monotonic clock, in ms. */
  readonly confirmAtMs: number;
  /** It is due. Called once. */
  confirmNow(): void;
}

/** When a grant is to be confirmed that the server made at `setAt` and that lasts for `provisionalMs`. */
export function confirmAtMs(
  runtime: Runtime,
  { setAt, provisionalMs = Infinity }: { readonly setAt: Moment; readonly provisionalMs?: number | undefined },
): number {
  return setAt.monotonicMs + Math.min(SHORT_HOLD_MS + runtime.random() * JITTER_MS, provisionalMs / 3);
}

/** See the file header. One for each Holdfast. */
export class Confirmations {
  readonly #runtime: Runtime;
  readonly #waiting = new Set<Unconfirmed>();
  readonly #timer: SharedTimer;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#timer = new SharedTimer(runtime, () => this.#look());
  }

  /** From now on it is confirmed when it is due. */
  add(one: Unconfirmed): void {
    this.#waiting.add(one);
    this.#timer.ensure(Math.max(0, one.confirmAtMs - this.#runtime.monotonicMs()));
  }

  /** It was confirmed, or is over. */
  remove(one: Unconfirmed): void {
    this.#waiting.delete(one);
  }

  /** Nobody is left. */
  close(): void {
    this.#waiting.clear();
    this.#timer.cancel();
  }

  #arm(inMs: number): void {
    this.#timer.start(Math.max(0, inMs));
  }

  #look(): void {
    const nowMs = this.#runtime.monotonicMs();
    let nextAtMs = Infinity;
    for (const one of [...this.#waiting]) {
      if (one.confirmAtMs <= nowMs) {
        this.#waiting.delete(one);
        one.confirmNow();
      } else {
        nextAtMs = Math.min(nextAtMs, one.confirmAtMs);
      }
    }
    // A confirmation may have added others and armed the timer.
    if (nextAtMs < Infinity && !this.#timer.isRunning) this.#arm(nextAtMs - nowMs);
  }
}
