/**
 * Owners of leases that follow each other on one claim. For the server that is one holder; in a history each lease has an
 * owner of its own, which is the owner id itself for the first, and has a suffix for the others.
 */
import type { Operation } from "./records.js";

/** Of the lease that is the claim's next after so many. */
export function nameOfLease(owner: string, turn: number): string {
  return turn === 0 ? owner : `${owner}/+${turn}`;
}

/** Of who asks by a claim that others ask by too, the nth to do so; for as long as it has no lease. */
export function nameOfCaller(owner: string, nth: number): string {
  return `${owner}/-${nth}`;
}

/** The owner id behind any of these names. */
export function claimOf({ owner }: Pick<Operation, "owner">): string {
  return owner.replace(/\/[+-]\d+$/, "");
}

/** How many leases the claim of this one had before. */
export function turnOf({ owner }: Pick<Operation, "owner">): number {
  return Number(/\/\+(\d+)$/.exec(owner)?.[1] ?? 0);
}

/** Whether an operation begins a lease that another caller of its process had the claim of before. */
export function isHandedOn(operation: Pick<Operation, "owner" | "verb" | "outcome">): boolean {
  return operation.verb === "acquire" && operation.outcome === "ok" && turnOf(operation) > 0;
}
