import type { History } from "../../history/history.js";
import { claimOf } from "../../history/lease-names.js";
import type { Cell } from "../cell.js";

/** Faults after which the server may return with an older state, unless the cell guarantees that it loses nothing. */
const REVIVES = /^J(?:2[467]|3[1-4])(?:-|$)/;

/**
 * Key scans, with owners under each of their names in the history.
 *
 * After a restart with an older file, claims that had left exist again. No client caused this, so they are omitted.
 */
export function namedScans({ operations, keyScans, faults }: History, { row, expectation }: Cell): History["keyScans"] {
  const names = new Map<string, string[]>();
  for (const operation of operations) {
    const claim = claimOf(operation);
    if (claim !== operation.owner) names.set(claim, [...(names.get(claim) ?? []), operation.owner]);
  }
  const isRevived = REVIVES.test(row) && (expectation !== "kept" || row.includes("-"));
  const revivedMs = faults.reduce((last, { endedMs }) => Math.max(last, endedMs), Number.NEGATIVE_INFINITY);
  const left = new Set(operations.filter(({ returnMs }) => isRevived && returnMs <= revivedMs).map(claimOf));
  return keyScans.map((scan) => ({
    ...scan,
    owners: scan.owners.filter((owner) => !left.has(owner)).flatMap((owner) => [owner, ...(names.get(owner) ?? [])]),
  }));
}
