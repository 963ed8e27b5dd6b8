import { groupBy, type History } from "../history/history.js";
import type { Operation } from "../history/records.js";
import { Findings, type SweepResult } from "./result.js";

/** A waiter whose queue place was acknowledged, and whose process stayed alive until its grant or the end. */
interface Waiter {
  readonly operation: Operation;
  readonly enqueuedMs: number;
}

/**
 * X3: a caller that learned that it is queued is granted before all callers that asked later.
 *
 * Grants are ordered by token if both have one, because the message of the earlier one may arrive later; otherwise by
 * return, which needs an exclusive lock. Waiters that gave up, died or were considered dead, or whose outcome is
 * unknown, are excluded and listed.
 *
 * Figure `inversions`: the number of grants that overtook another waiter.
 */
export function fairOrder(history: History): SweepResult {
  const findings = new Findings("X3");
  const acknowledged = new Map(history.enqueued.map(({ operationId, atMs }) => [operationId, atMs]));
  const missed = new Set(history.missed.map(({ operationId }) => operationId));
  findings.most("inversions", 0);
  let inversions = 0;
  const acquires = history.operations.filter(({ verb }) => verb === "acquire");
  for (const [name, all] of groupBy(acquires, ({ lockName }) => lockName)) {
    const waiters: Waiter[] = [];
    for (const operation of all) {
      const enqueuedMs = acknowledged.get(operation.id);
      if (enqueuedMs === undefined) continue;
      const reason = missed.has(operation.id) ? "it was considered dead" : whyExcluded(operation);
      if (reason !== undefined) findings.exclude(operation, reason);
      else waiters.push({ operation, enqueuedMs });
    }
    waiters.sort((a, b) => a.enqueuedMs - b.enqueuedMs);
    const granted = all.filter(({ outcome }) => outcome === "ok").sort((a, b) => a.callMs - b.callMs);
    let next = 0;
    let byToken: Operation | undefined;
    let byReturn: Operation | undefined;
    for (const operation of granted) {
      for (
        let ahead = waiters[next];
        ahead !== undefined && ahead.enqueuedMs < operation.callMs;
        ahead = waiters[next]
      ) {
        if (byToken === undefined || (ahead.operation.token ?? 0) > (byToken.token ?? 0)) byToken = ahead.operation;
        if (byReturn === undefined || ahead.operation.returnMs > byReturn.returnMs) byReturn = ahead.operation;
        next += 1;
      }
      if (byToken === undefined || byReturn === undefined) continue;
      const passed = [byToken, byReturn].find((ahead) => isPassed(ahead, operation));
      if (passed !== undefined) inversions += 1;
      findings.most("inversions", inversions);
      findings.decide(
        name,
        passed === undefined ? [operation] : [passed, operation],
        passed && `"${name}" was granted to ${operation.owner} before ${passed.owner}, which was in the queue first`,
      );
    }
  }
  return findings.result();
}

/** Undefined for waiters that count. A wait still open at the end is `info` only if its process has ended. */
function whyExcluded({ outcome, refusal }: Operation): string | undefined {
  if (outcome === "ok") return undefined;
  if (outcome === "info") return "its outcome is unknown";
  return refusal === "gave-up" ? "it gave up" : "it was refused";
}

function isPassed(ahead: Operation, operation: Operation): boolean {
  if (ahead.token !== null && operation.token !== null) return ahead.token > operation.token;
  return ahead.returnMs > operation.returnMs;
}
