import type { LockEvent } from "./events.js";

/**
 * What tells a hold from all others of this process, from its grant to its end.
 *
 * By the token too, since leases of one claim may follow each other; but not of a read-write lock, where each lease has a claim of
 * its own, and an upgrade changes its token.
 */
export function idOf({ lockName, owner, token, mode }: LockEvent & { readonly token: number }): string {
  return mode === undefined ? `${owner} ${token} ${lockName}` : `${owner} ${lockName}`;
}
