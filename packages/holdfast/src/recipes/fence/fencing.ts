/** What a resource needs to know of a lease, and the rule by which it is turned away. */
import { checkName, checkWhole, show } from "../../internal.js";
import { ForeignLockError, StaleTokenError } from "./errors.js";

/**
 * A lease; or the name and token of one, as they came to another process. A lock is known by its name here, so a resource must not be
 * fenced by two kinds of lock with one name. Of a multi-lock give one of its `leases`, always of the same member.
 */
export interface FencingLease {
  /** Of the lock. */
  readonly name: string;
  readonly token: number;
}

/** What a resource remembers: the lock that it belongs to, and the highest token of it that was seen. */
export interface Mark {
  readonly lock: string;
  readonly token: number;
}

/** @throws TypeError, RangeError  it is none */
export function checkFencing(lease: unknown): FencingLease {
  if (typeof lease !== "object" || lease === null || !("name" in lease) || !("token" in lease)) {
    throw new TypeError(`lease must be a lease, or the name and token of one; got ${show(lease)}`);
  }
  const { token } = lease;
  checkWhole("lease.token", token, 1, Number.MAX_SAFE_INTEGER);
  return { name: checkName(lease.name), token: token as number }; // just checked
}

/** Turns the lease away if the mark says so. @throws StaleTokenError, ForeignLockError */
export function refuseBy({ lock, token: seen }: Mark, resource: string, { name, token }: FencingLease): void {
  if (lock !== name) throw new ForeignLockError(name, { resource, token, belongsTo: lock });
  if (seen > token) throw new StaleTokenError(name, { resource, token, seen });
}
