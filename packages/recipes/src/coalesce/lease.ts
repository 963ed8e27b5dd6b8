import { LeaseLostError } from "holdfast";
import { Lease } from "holdfast/internal";

/** The lease of one run. A later call can ask the run to end. */
export class CoalesceLease extends Lease {
  readonly #superseded = new AbortController();
  #either: AbortSignal | undefined;

  /**
   * Aborts as in every lease. Also aborts, with a LeaseLostError whose reason is `superseded`, when a later call with
   * `cancelRunning` wants to run. In that case, the lease is not lost: it is renewed until the work has ended, and the
   * later call waits for that.
   */
  override get signal(): AbortSignal {
    this.#either ??= AbortSignal.any([super.signal, this.#superseded.signal]);
    return this.#either;
  }

  /** Asks the work to end. Further calls do nothing. @internal */
  supersede(): void {
    if (this.#superseded.signal.aborted) return;
    const { name, token, owner } = this;
    this.#superseded.abort(new LeaseLostError(name, { reason: "superseded", token, owner }));
  }

  /**
   * Whether `error` is the abort reason of the work's signal, or has that reason as its cause, like Node's AbortError.
   *
   * @internal
   */
  isSupersededFor(error: unknown): boolean {
    const { aborted, reason } = this.#superseded.signal;
    return aborted && (error === reason || (error instanceof Error && error.cause === reason));
  }
}
