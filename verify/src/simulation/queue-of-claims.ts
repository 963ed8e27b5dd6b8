/** A history as the queue of the server sees it, where callers share claims: a claim waits once, for all of them. */
import type { Enqueued, History, Missed, Operation } from "../history/index.js";
import { claimOf, nameOfLease, turnOf } from "../history/lease-names.js";
import { isOfCrowd } from "./crowds.js";
import type { SharedClaim } from "./shared-claims.js";

type Shared = ReadonlyMap<string, SharedClaim>;

/**
 * One acquire for each claim that was granted, called when the claim was sent, and the release that gave it back to the
 * server. Callers of a crowd that were not granted anything are left out: their claim waits on, or was taken back.
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

/** With the length that the lease on the server may have at most, for each lease that was handed on. */
export function withServerLeases(history: History, shared: Shared): History {
  if (shared.size === 0) return history;
  const operations = history.operations.map((operation) => {
    const leaseMs = operation.verb === "acquire" ? shared.get(claimOf(operation))?.leaseMs : undefined;
    return leaseMs === undefined ? operation : { ...operation, args: { leaseMs, ...operation.args } };
  });
  return { ...history, operations };
}

/** Each handed-over lease counts as called no sooner than its predecessor began, so that the search can end. */
export function inTheirTurns(operations: readonly Operation[]): readonly Operation[] {
  const isLater = (operation: Operation): boolean => operation.verb === "acquire" && turnOf(operation) > 0;
  if (!operations.some(isLater)) return operations;
  const begunMs = new Map(operations.map(({ verb, owner, returnMs }) => [verb === "acquire" ? owner : "", returnMs]));
  return operations.map((operation) => {
    if (!isLater(operation)) return operation;
    const beforeMs = begunMs.get(nameOfLease(claimOf(operation), turnOf(operation) - 1)) ?? operation.callMs;
    // What was granted before a history is cut short may have no return in it.
    return Number.isFinite(beforeMs) ? { ...operation, callMs: Math.max(operation.callMs, beforeMs) } : operation;
  });
}
