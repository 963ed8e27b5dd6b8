/**
 * The queries of one flight. They use a claim that is registered with the session, so the session notifies the flight
 * when a connection is restored and when the Holdfast closes. A query may grant the load to this claim.
 */
import { StoreError } from "holdfast";
import { type Claim, type Hold, hold, NOTHING_RUNS, now, type Occupant } from "holdfast/internal";
import type { LoadPlace } from "./load.js";
import type { CacheReply } from "./protocol.js";

/** The reply to a query. If it grants the load, call either `begin` or `giveBack`. */
export interface Answer {
  readonly reply: CacheReply;
  /** Starts the hold of the granted load. */
  readonly begin: (token: number) => Hold;
  /** Releases the granted load. Never rejects. */
  readonly giveBack: () => Promise<void>;
}

/** The queries of one flight, and the claim that they use. */
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

  /**
   * Continues with a new claim, because a late copy of a request may still grant the load to the old one.
   *
   * @throws ClosedError
   */
  renew(): void {
    this.end();
    this.#claim = this.#admitted();
  }

  /** Unregisters the claim from the session. */
  end(): void {
    this.#place.session.dismiss(this.#claim, this.#occupant);
  }

  /**
   * Queries the entry. The load is granted to this claim if the entry has no fresh value and no other process is
   * loading it.
   *
   * @param timeoutMs  time limit for the reply, in milliseconds
   * @throws StoreError  if the load was granted, the grant is released or expires on its own
   */
  async ask(timeoutMs: number): Promise<Answer> {
    const { session, protocol } = this.#place;
    const claim = this.#claim;
    const setAt = now(session.runtime);
    const giveBack = (): Promise<void> => protocol.leave(claim, session.commandTimeoutMs).catch(() => {});
    try {
      const reply = await protocol.read(claim, timeoutMs);
      const begin = (token: number): Hold => {
        const granted = { claim, token, slots: [], setAt, waitedMs: 0, call: setAt, mayStillRun: NOTHING_RUNS };
        return hold(session, protocol, granted, { renew: true, maxHoldMs: Infinity });
      };
      return { reply, begin, giveBack };
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
