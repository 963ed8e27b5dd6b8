import { type ElectionProtocol, type Hold, Leadership, type Session } from "../../internal.js";

/** A leadership whose signal aborts also when it is to be given up, before it is. */
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
      // Any other reason is what the server, or this process, has just said.
      const silentMs = reason === "expired" ? hold.leaseMs : 0;
      this.#lastWordAtMs = session.runtime.monotonicMs() - silentMs;
    });
  }

  /** As of every lease; and with a ResignedError, or the reason of the signal that ended it, when its work is to end. */
  override get signal(): AbortSignal {
    this.#both ??= AbortSignal.any([super.signal, this.#stop]);
    return this.#both;
  }

  /** How long ago the server last said that it leads, in ms, if it is lost; else 0. @internal */
  lostForMs(): number {
    this.#hold.validForMs();
    return this.#lastWordAtMs === undefined ? 0 : this.#session.runtime.monotonicMs() - this.#lastWordAtMs;
  }
}
