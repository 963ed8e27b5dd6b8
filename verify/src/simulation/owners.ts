/** Parses owner ids: `<clientId>/<n>/<leaseMs>/<amount>/<label>;<handOffMs>`. Old clients omit the last part. */

/** The label in an owner id, which is its session's; a string without an owner id is returned unchanged. */
export function labelIn(owner: string): string {
  return owner.split("/")[4]?.replace(/[;,].*$/s, "") ?? owner;
}

/** How long a grant by message lasts until it is confirmed, in ms; undefined if it lasts for the whole lease. */
export function handOffMsIn(owner: string): number | undefined {
  const ms = /;(\d+)(?:\/[+-]\d+)?$/.exec(owner)?.[1];
  return ms === undefined ? undefined : Number(ms);
}

/** Whether its process may retain the claim: it reserves an odd number of tokens above 1, see docs/adr/146. */
export function isRetainable(owner: string): boolean {
  const amount = Number(owner.split("/")[3]);
  return amount > 1 && amount % 2 === 1;
}
