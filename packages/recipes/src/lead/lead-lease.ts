import { type ElectionProtocol, type Hold, Leadership, type Session } from "holdfast/internal";

/** A leadership whose signal also aborts when the work must stop, while the lease is still held. */
export class LeadLease extends Leadership {
  readonly #session: Session;
  readonly #hold: Hold;
  readonly #stop: AbortSignal;
  #both: AbortSignal | undefined;
  #lastWordAtMs: number | undefined;

  /** @internal */
  constructor(session: Session, protocol: ElectionProtocol, hold: Hold, stop: AbortSignal) {
    super(session, protocol, hold, "");
    this.#session = session;
    this.#hold = hold;
    this.#stop = stop;
    hold.onLost((reason) => {
      if (reason === "closing") return;
      // A lease that expires was last confirmed `leaseMs` ago; any other loss was reported just now.
      const silentMs = reason === "expired" ? hold.leaseMs : 0;
      this.#lastWordAtMs = session.runtime.monotonicMs() - silentMs;
    });
  }

  /**
   * Aborts as in every lease. Also aborts when the work must stop, with a ResignedError or the reason of the `signal`
   * option of `lead`.
   */
  override get signal(): AbortSignal {
    this.#both ??= AbortSignal.any([super.signal, this.#stop]);
    return this.#both;
  }

  /**
   * Milliseconds since the server last confirmed the lease or reported its loss; 0 if the lease is not lost.
   *
   * @internal
   */
  lostForMs(): number {
    this.#hold.validForMs();
    return this.#lastWordAtMs === undefined ? 0 : this.#session.runtime.monotonicMs() - this.#lastWordAtMs;
  }
}
