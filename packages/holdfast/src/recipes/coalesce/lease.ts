import { LeaseLostError } from "../../index.js";
import { Lease } from "../../internal.js";

/** The lease of one run, which a later call may ask to end. */
export class CoalesceLease extends Lease {
  readonly #superseded = new AbortController();
  #either: AbortSignal | undefined;

  /**
   * As of every lease; and it aborts with the reason `superseded` when a later call with `cancelRunning` wants to run. Then nothing
   * is lost: the lease is held and renewed until the work has ended, and the later call waits for that.
   */
  override get signal(): AbortSignal {
    this.#either ??= AbortSignal.any([super.signal, this.#superseded.signal]);
    return this.#either;
  }

  /** Somebody wants it to end. A second call does nothing. @internal */
  supersede(): void {
    if (this.#superseded.signal.aborted) return;
    const { name, token, owner } = this;
    this.#superseded.abort(new LeaseLostError(name, { reason: "superseded", token, owner }));
  }

  /** Whether that error is why the work was asked to end, or says that it was, as what Node aborts does. @internal */
  isSupersededFor(error: unknown): boolean {
    const { aborted, reason } = this.#superseded.signal;
    return aborted && (error === reason || (error instanceof Error && error.cause === reason));
  }
}
