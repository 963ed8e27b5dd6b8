/** Reads the lease from an owner id, whose format is in packages/holdfast/docs/keys.md. */

/** Returns the lease that a claim asked for, in ms. 0 if a client of another library wrote the owner id. */
export function leaseMsIn(owner: string): number {
  return Number(/^[\w-]+\/\d+\/(\d+)\/\d+(?:\/|$)/.exec(owner)?.[1] ?? 0);
}
