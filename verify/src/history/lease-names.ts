/**
 * Owner names for consecutive leases of one claim. The server sees one holder; in a history each lease has its own
 * owner: the owner id itself for the first lease, and the id with a suffix for the others.
 */
import type { Operation } from "./records.js";

/** The name of the claim's lease after `turn` earlier ones. */
export function nameOfLease(owner: string, turn: number): string {
  return turn === 0 ? owner : `${owner}/+${turn}`;
}

/** The name of the nth caller of a shared claim, until it has a lease. */
export function nameOfCaller(owner: string, nth: number): string {
  return `${owner}/-${nth}`;
}

/** The owner id in any of these names. */
export function claimOf({ owner }: Pick<Operation, "owner">): string {
  return owner.replace(/\/[+-]\d+$/, "");
}

/** How many leases the claim had before this one. */
export function turnOf({ owner }: Pick<Operation, "owner">): number {
  return Number(/\/\+(\d+)$/.exec(owner)?.[1] ?? 0);
}

/** Whether an operation begins a lease that was handed over from another caller of its process. */
export function isHandedOn(operation: Pick<Operation, "owner" | "verb" | "outcome">): boolean {
  return operation.verb === "acquire" && operation.outcome === "ok" && turnOf(operation) > 0;
}
