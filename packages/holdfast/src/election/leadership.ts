import { LeaseLostError } from "../core/errors.js";
import type { Hold } from "../core/hold.js";
import { checkValue } from "../core/keys.js";
import type { ExportedLease } from "../core/lease.js";
import { askAsHolder, Lease } from "../core/lease.js";
import type { NotHeld } from "../core/protocol.js";
import { insist } from "../core/release.js";
import type { Session } from "../core/session.js";
import type { ElectionProtocol } from "./protocol.js";

/** The lease of the winner of an election. Other processes can see the winner's value. */
export class Leadership extends Lease {
  readonly #session: Session;
  readonly #protocol: ElectionProtocol;
  readonly #hold: Hold;
  #value: string;
  #lastNumber = 0;

  /** @internal */
  constructor(session: Session, protocol: ElectionProtocol, hold: Hold, value: string) {
    super(hold);
    this.#value = value;
    this.#session = session;
    this.#protocol = protocol;
    this.#hold = hold;
  }

  /** Sequence number of the leadership, higher than that of any earlier one in this election. The same as `token`. */
  get term(): number {
    return this.token;
  }

  /** The last value that this leader proclaimed. */
  get value(): string {
    return this.#value;
  }

  /**
   * Changes the value of the leader and notifies observers immediately. Takes one round trip.
   *
   * @param value  at most 65,536 bytes
   * @throws LeaseLostError  the leadership is over; nothing was changed
   * @throws StoreError      outcome unknown
   * @throws TypeError, RangeError  invalid value; nothing was sent
   */
  async proclaim(value: string): Promise<void> {
    checkValue(value);
    this.assertHeld();
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const { owner, token } = this;
    const { leaseMs } = this.#hold.grant.claim;
    const ask = (): Promise<"proclaimed" | NotHeld> =>
      insist(this.#session, () =>
        this.#protocol.proclaim({ owner, token }, value, number, leaseMs, this.#session.commandTimeoutMs),
      );
    const outcome = await askAsHolder(this, ask, (answer) => answer !== "proclaimed");
    if (outcome === "proclaimed") {
      if (number === this.#lastNumber) this.#value = value;
      return;
    }
    const reason = this.#hold.validForMs() > 0 ? "server-lost" : "expired";
    this.#hold.lose(reason);
    this.assertHeld();
    throw new LeaseLostError(this.name, { reason, token, owner });
  }

  override export(): ExportedLease {
    const value = this.#value;
    return { ...super.export(), value };
  }
}
