/** Reads the lease length from an owner id. packages/holdfast/docs/keys.md documents the format. */

/** Returns the lease length that a claim requested, in ms. 0 if a client of another library wrote the owner id. */
export function leaseMsIn(owner: string): number {
  return Number(/^[\w-]+\/\d+\/(\d+)\/\d+(?:\/|$)/.exec(owner)?.[1] ?? 0);
}
