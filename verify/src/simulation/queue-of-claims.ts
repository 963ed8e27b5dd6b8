/**
 * Converts a history with shared claims to the server's view of the queue: each claim waits once for all of its
 * callers.
 */
import type { Enqueued, History, Missed, Operation } from "../history/index.js";
import { claimOf, nameOfLease, turnOf } from "../history/lease-names.js";
import { isOfCrowd } from "./crowds.js";
import type { SharedClaim } from "./shared-claims.js";

type Shared = ReadonlyMap<string, SharedClaim>;

/**
 * Gives each granted claim one acquire, called when the claim was sent, and the release that returned it to the
 * server. Callers of a crowd that were not granted anything are left out: their claim continues to wait, or was
 * withdrawn.
 */
export function claimsAsWaiters(history: History, shared: Shared): History {
  if (shared.size === 0) return history;
  const enqueued: Enqueued[] = [...history.enqueued];
  const missed: Missed[] = [...history.missed];
  const lastTurns = new Map(Array.from(shared, ([owner, { leases }]) => [owner, leases - 1]));
  const operations = history.operations.flatMap((operation) => {
    const { owner, verb, outcome, id, lockName } = operation;
    const claim = shared.get(claimOf(operation));
    if (claim === undefined) return verb === "acquire" && isOfCrowd(owner) ? [] : [operation];
    if (verb === "release") return turnOf(operation) === lastTurns.get(claim.owner) ? [operation] : [];
    if (verb !== "acquire") return [operation];
    if (outcome !== "ok" || turnOf(operation) > 0) return [];
    const about = { lockName, operationId: id };
    if (claim.enqueuedMs < Infinity) enqueued.push({ type: "enqueued", atMs: claim.enqueuedMs, ...about });
    if (claim.missedMs < Infinity) missed.push({ type: "missed", atMs: claim.missedMs, ...about });
    return [{ ...operation, callMs: claim.queued.callMs }];
  });
  return { ...history, operations, enqueued, missed };
}

/** Adds the longest possible lease on the server to each lease that was handed on. */
export function withServerLeases(history: History, shared: Shared): History {
  if (shared.size === 0) return history;
  const operations = history.operations.map((operation) => {
    const leaseMs = operation.verb === "acquire" ? shared.get(claimOf(operation))?.leaseMs : undefined;
    return leaseMs === undefined ? operation : { ...operation, args: { leaseMs, ...operation.args } };
  });
  return { ...history, operations };
}

/** Makes each handed-on lease start no earlier than its predecessor, so that the search finishes. */
export function inTheirTurns(operations: readonly Operation[]): readonly Operation[] {
  const isLater = (operation: Operation): boolean => operation.verb === "acquire" && turnOf(operation) > 0;
  if (!operations.some(isLater)) return operations;
  const begunMs = new Map(operations.map(({ verb, owner, returnMs }) => [verb === "acquire" ? owner : "", returnMs]));
  return operations.map((operation) => {
    if (!isLater(operation)) return operation;
    const beforeMs = begunMs.get(nameOfLease(claimOf(operation), turnOf(operation) - 1)) ?? operation.callMs;
    // In a history that was cut, the release of an earlier lease may be missing.
    return Number.isFinite(beforeMs) ? { ...operation, callMs: Math.max(operation.callMs, beforeMs) } : operation;
  });
}
