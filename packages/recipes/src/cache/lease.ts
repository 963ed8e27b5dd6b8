/** Loaders of a cache, and the lease that they get. */
import type { Lease } from "holdfast";

/** Loads the value of one key. */
export type Loader<Value> = (lease: LoadLease) => Value | Promise<Value>;

/** The argument of a loader. Its signal aborts when no caller waits for the value any longer. */
export class LoadLease {
  /**
   * Aborts when the last caller has given up, when the value has arrived from elsewhere, or when this Holdfast closes.
   * Does not abort when the lease is lost, because callers here still want the value and a second load does no harm.
   */
  readonly signal: AbortSignal;
  readonly #lease: Lease | undefined;

  /** @internal */
  constructor(signal: AbortSignal, lease: Lease | undefined) {
    this.signal = signal;
    this.#lease = lease;
  }

  /** Token of this load. It rises with each load of the key; undefined if the value is loaded without a lease. */
  get token(): number | undefined {
    return this.#lease?.token;
  }

  /**
   * Checks that the lease is still held. Does nothing if the value is loaded without a lease.
   *
   * @throws LeaseLostError  the lease expired, another process is loading the value, or the entry was invalidated; the
   *                         value from this load is probably not stored
   */
  assertHeld(): void {
    this.#lease?.assertHeld();
  }
}
