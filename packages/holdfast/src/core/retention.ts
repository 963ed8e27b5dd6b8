/**
 * The interface through which a lock retains its claims. The implementation is in `holdfast/retain`, so that programs
 * without retention do not load it.
 */
import type { Caller } from "./batch.js";
import type { SharedClaim } from "./hold.js";
import type { ResolvedOptions } from "./options.js";
import type { Granted, LockProtocol } from "./protocol.js";
import type { Session } from "./session.js";

/** How long this process keeps a lock after its last release. The result of `retain` from `holdfast/retain`. */
export interface Retention {
  /**
   * Called for each caller before it joins a local queue.
   *
   * @throws RangeError  the lease of the caller is too short for this retention
   * @internal
   */
  check(options: Pick<ResolvedOptions, "leaseMs">): void;

  /**
   * Returns how many tokens the next claim reserves, or undefined for the usual number.
   *
   * @param last  the last claim of the same callers, if it could be retained
   * @internal
   */
  nextBlock(session: Session, protocol: LockProtocol, last: Retainable | undefined): number | undefined;

  /**
   * Returns the claim that was just granted, if it may be retained after its last release.
   *
   * @param hasWaited  whether the claim had to wait
   * @param callers    how many other callers of this process are waiting for the lock
   * @internal
   */
  keep(
    session: Session,
    protocol: LockProtocol,
    granted: Granted,
    hasWaited: boolean,
    callers: number,
  ): Retainable | undefined;
}

/** A claim that this process keeps after its last release, so that the next caller gets it without a request. */
export interface Retainable extends SharedClaim {
  /**
   * Begins the lease of a caller. Returns false if the claim is in use or cannot be reused; the claim is then
   * released, immediately or after its current lease.
   */
  serve(caller: Caller): boolean;

  /** Releases the claim, unless it is in use. Resolves when the server has replied to the first request. */
  end(): Promise<unknown>;
}
