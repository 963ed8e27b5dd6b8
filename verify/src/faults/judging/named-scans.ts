import type { History } from "../../history/history.js";
import { claimOf } from "../../history/lease-names.js";

/** What was found in the keys, under each of the names that it has in the history. */
export function namedScans({ operations, keyScans }: History): History["keyScans"] {
  const names = new Map<string, string[]>();
  for (const operation of operations) {
    const claim = claimOf(operation);
    if (claim !== operation.owner) names.set(claim, [...(names.get(claim) ?? []), operation.owner]);
  }
  return keyScans.map((scan) => ({
    ...scan,
    owners: scan.owners.flatMap((owner) => [owner, ...(names.get(owner) ?? [])]),
  }));
}
