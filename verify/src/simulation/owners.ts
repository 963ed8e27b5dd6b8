/** Parses owner ids: `<clientId>/<n>/<leaseMs>/<amount>/<label>;<handOffMs>`. Old clients omit the last part. */

/** The label of a claim, which is its session's; the whole text where it is no owner id but a label itself. */
export function labelIn(owner: string): string {
  return owner.split("/")[4]?.replace(/[;,].*$/s, "") ?? owner;
}

/** How long a grant by message lasts until it is confirmed, in ms; undefined where it lasts for the whole lease. */
export function handOffMsIn(owner: string): number | undefined {
  const ms = /;(\d+)(?:\/[+-]\d+)?$/.exec(owner)?.[1];
  return ms === undefined ? undefined : Number(ms);
}
