/**
 * `holdfast/retain`: keeps a mutex for a short time after its release, so that this process can acquire it again
 * without a round trip. This is a separate entry point, so that programs that do not use it do not load it.
 */
import { checkWhole } from "../core/options.js";
import type { Retention } from "../core/retention.js";
import { checkKnown } from "../holdfast-options.js";
import { RetainedClaim } from "./retained-claim.js";

export type { Retention } from "../core/retention.js";

/** How long to retain a lock. */
export interface RetainOptions {
  /**
   * How long the process may keep the lock after its first release, unless another caller is waiting for it. A longer
   * time saves more round trips. If the process crashes or freezes while it keeps the lock, others wait until the lease
   * expires, regardless of `forMs`. After a refused `tryAcquire` from another process, this process does not keep the
   * lock at all until `forMs` has passed. Whole milliseconds, 0 to a third of `leaseMs`. If the lease is too short for
   * this value, `acquire` rejects with a RangeError.
   */
  readonly forMs: number;
}

/** A third of the longest lease. */
const LONGEST_MS = 10_512_000_000;

/**
 * Returns the value for the `retain` option of `mutex` and `reentrantMutex`.
 *
 * The process keeps the lock for up to `forMs` after a release. If it acquires the lock again within that time, no
 * request is sent. If another process wants the lock, the server notifies this process, which releases the lock
 * immediately.
 *
 * @throws TypeError, RangeError  an invalid option
 *
 * @example
 * import { createHoldfast } from "holdfast";
 * import { retain } from "holdfast/retain";
 *
 * const holdfast = createHoldfast({ redis });
 * const mutex = holdfast.mutex("order:42", { retain: retain({ forMs: 2_000 }) });
 */
export function retain(options: RetainOptions): Retention {
  const { forMs } = checkKnown<RetainOptions>(options ?? null, ["forMs"]);
  checkWhole("forMs", forMs, 0, LONGEST_MS);
  // `checkWhole` has checked the type.
  const retainMs = forMs as number;
  return {
    check({ leaseMs }) {
      if (retainMs > leaseMs / 3) {
        throw new RangeError(
          `retain.forMs must be at most ${Math.floor(leaseMs / 3)}, a third of leaseMs; got ${retainMs}`,
        );
      }
    },
    nextBlock(session, { key }, last) {
      return retainMs === 0 ? undefined : RetainedClaim.nextBlock(session, key, last);
    },
    keep(session, protocol, granted, hasWaited, callers) {
      return retainMs === 0 ? undefined : RetainedClaim.of(session, protocol, granted, hasWaited, callers, retainMs);
    },
  };
}
