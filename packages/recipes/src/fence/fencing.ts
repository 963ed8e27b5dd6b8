/** The facts that a fenced resource needs about a lease, and the rule for refusing one. */
import { checkName, checkWhole, show } from "holdfast/internal";
import { ForeignLockError, StaleTokenError } from "./errors.js";

/**
 * A lease, or the name and token of one that another process holds. A lock is identified by its name alone, so do not
 * fence a resource with two kinds of lock that have the same name. For a multi-lock, pass one of its `leases`, and
 * always use the same member's lease.
 */
export interface FencingLease {
  /** Name of the lock. */
  readonly name: string;
  /** Fencing token of the lease. */
  readonly token: number;
}

/** The lock that a resource belongs to, and the highest token that it has seen. */
export interface Mark {
  /** Name of the lock. */
  readonly lock: string;
  /** Highest token of that lock that was seen. */
  readonly token: number;
}

/**
 * Returns the name and token of a lease.
 *
 * @throws TypeError, RangeError  `lease` is neither a lease nor the name and token of one
 */
export function checkFencing(lease: unknown): FencingLease {
  if (typeof lease !== "object" || lease === null || !("name" in lease) || !("token" in lease)) {
    throw new TypeError(`lease must be a lease, or the name and token of one; got ${show(lease)}`);
  }
  const { token } = lease;
  checkWhole("lease.token", token, 1, Number.MAX_SAFE_INTEGER);
  return { name: checkName(lease.name), token: token as number }; // just checked
}

/** Refuses a lease that is older than the mark or belongs to another lock. @throws StaleTokenError, ForeignLockError */
export function refuseBy({ lock, token: seen }: Mark, resource: string, { name, token }: FencingLease): void {
  if (lock !== name) throw new ForeignLockError(name, { resource, token, belongsTo: lock });
  if (seen > token) throw new StaleTokenError(name, { resource, token, seen });
}
