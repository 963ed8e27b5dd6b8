/** The questions of one flight, under an id that the session knows: it tells of reconnects and of the end, and may be granted the load. */
import { StoreError } from "../../index.js";
import { type Claim, type Hold, hold, NOTHING_RUNS, now, type Occupant } from "../../internal.js";
import type { LoadPlace } from "./load.js";
import type { Look } from "./protocol.js";

/** An answer; if the load is granted, with the way to begin it or to give it back. */
export interface Answer {
  readonly looked: Look;
  readonly begin: (token: number) => Hold;
  readonly giveBack: () => Promise<void>;
}

/** See the file header. */
export class Inquiry {
  readonly #place: LoadPlace<never>;
  readonly #occupant: Occupant;
  #claim: Claim;

  /** @throws ClosedError */
  constructor(place: LoadPlace<never>, occupant: Occupant) {
    this.#place = place;
    this.#occupant = occupant;
    this.#claim = this.#admitted();
  }

  /** Goes on under another id, since the old one may still be granted something. @throws ClosedError */
  renew(): void {
    this.end();
    this.#claim = this.#admitted();
  }

  /** The session tells it nothing any more. */
  end(): void {
    this.#place.session.dismiss(this.#claim, this.#occupant);
  }

  /** @throws StoreError  what it may have been granted is given back, or ends by itself */
  async ask(timeoutMs: number): Promise<Answer> {
    const { session, protocol } = this.#place;
    const claim = this.#claim;
    const setAt = now(session.runtime);
    const giveBack = (): Promise<void> => protocol.leave(claim, session.commandTimeoutMs).catch(() => {});
    try {
      const looked = await protocol.look(claim, timeoutMs);
      const begin = (token: number): Hold => {
        const granted = { claim, token, slots: [], setAt, waitedMs: 0, call: setAt, mayStillRun: NOTHING_RUNS };
        return hold(session, protocol, granted, { renew: true, maxHoldMs: Infinity });
      };
      return { looked, begin, giveBack };
    } catch (error) {
      if (error instanceof StoreError && error.mayHaveRun) void giveBack();
      throw error;
    }
  }

  #admitted(): Claim {
    const { session, protocol, options } = this.#place;
    const claim = session.newClaim(protocol.name, options.leaseMs, 1, "");
    session.admit(claim, this.#occupant);
    return claim;
  }
}
