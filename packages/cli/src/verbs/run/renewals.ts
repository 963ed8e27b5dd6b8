/** Follows the renewals of one lease, for warnings and for the message when the lease is lost. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Lease, RenewEvent } from "holdfast";
import { Stopwatch } from "../../child/stopwatch.js";

/** Follows the renewals of one lease. */
export class Renewals {
  readonly #owner: string;
  readonly #onRisk: (event: RenewEvent) => void;
  readonly #onRenew = (message: unknown): void => this.#renewed(message as RenewEvent);
  #sinceConfirmed = new Stopwatch();
  #isAtRisk = false;

  /** @param onRisk  called when a renewal fails, and not again until a later renewal has succeeded */
  constructor(lease: Lease, onRisk: (event: RenewEvent) => void) {
    this.#owner = lease.owner;
    this.#onRisk = onRisk;
    subscribe("holdfast:renew", this.#onRenew);
  }

  /** The time since the grant or the last renewal that the server confirmed. */
  unconfirmedMs(): number {
    return this.#sinceConfirmed.elapsedMs();
  }

  close(): void {
    unsubscribe("holdfast:renew", this.#onRenew);
  }

  #renewed(event: RenewEvent): void {
    if (event.owner !== this.#owner) return;
    if (event.error === undefined) {
      this.#sinceConfirmed = new Stopwatch();
      this.#isAtRisk = false;
    } else if (!this.#isAtRisk) {
      this.#isAtRisk = true;
      this.#onRisk(event);
    }
  }
}
