/** What a caller of a cache supplies, and what that is given. */
import type { Lease } from "../../index.js";

/** Loads the value of one key. */
export type Loader<Value> = (lease: LoadLease) => Value | Promise<Value>;

/** What a loader is given: it tells when nobody wants the value any more. */
export class LoadLease {
  /**
   * Aborts when the last caller has given up, or this Holdfast closes. Not when the lease is lost, since callers here still want
   * the value: two loads are waste, and no harm.
   */
  readonly signal: AbortSignal;
  readonly #lease: Lease | undefined;

  /** Comes to a loader. @internal */
  constructor(signal: AbortSignal, lease: Lease | undefined) {
    this.signal = signal;
    this.#lease = lease;
  }

  /** Rises with each load of that key; undefined where it is loaded without asking anybody. */
  get token(): number | undefined {
    return this.#lease?.token;
  }

  /**
   * Says nothing where the value is loaded without a lease.
   *
   * @throws LeaseLostError  another process may load it as well, or it was invalidated: what is loaded here is not kept
   */
  assertHeld(): void {
    this.#lease?.assertHeld();
  }
}
