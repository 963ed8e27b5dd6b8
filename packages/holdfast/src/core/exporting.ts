/** A hold as plain JSON, for `holdfast.adopt` in another process. */
import type { ExportedLease } from "./holding.js";
import type { Grant, LockProtocol } from "./protocol.js";
import type { Term } from "./term.js";

/**
 * What another process needs to go on with a hold.
 *
 * @param exported  how its lock is found again
 * @param token     of the lease itself; the grant has that which the server compares
 */
export function describeExport(
  { kind, name }: LockProtocol,
  exported: NonNullable<LockProtocol["exported"]>,
  { claim: { owner }, token: reservedTo, slots }: Grant,
  token: number,
  term: Term,
  { renew, maxHoldMs }: { readonly renew: boolean; readonly maxHoldMs: number },
): ExportedLease {
  const restMs = maxHoldMs - term.heldMs();
  return {
    version: 1,
    kind,
    name,
    ...exported,
    owner,
    token,
    ...(reservedTo === token ? {} : { reservedTo }),
    leaseMs: term.leaseMs,
    renew,
    ...(maxHoldMs === Infinity ? {} : { maxHoldMs: Math.max(1, Math.ceil(restMs)) }),
    ...(slots.length === 0 ? {} : { slots }),
  };
}
