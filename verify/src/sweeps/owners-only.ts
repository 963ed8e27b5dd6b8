import { groupBy, type History } from "../history/history.js";
import type { Observation, Operation } from "../history/records.js";
import { claimsByLock, EXCLUSIVE, type LeaseClaim } from "./claims.js";
import { Findings, type SweepResult, showMs } from "./result.js";

/** The options for S3. */
export interface OwnersOnlyOptions {
  /** The largest difference between two readings of the same expiry. */
  readonly epsMs: number;
  /** Whether the observer read directly before and after the server's step, with nothing in between. */
  readonly isOneStep?: boolean;
}

/**
 * S3: only the owner's release or extend has an effect; those of others are refused and change nothing.
 *
 * Decides three cases: a success without a lease; a success while another holder relied on the lock the whole time;
 * and the state before and after a refusal, unless another operation was in progress.
 */
export function ownersOnly(history: History, { epsMs, isOneStep = false }: OwnersOnlyOptions): SweepResult {
  const findings = new Findings("S3");
  const claims = claimsByLock(history, EXCLUSIVE);
  const operations = groupBy(history.operations, ({ lockName }) => lockName);
  for (const [name, all] of operations) {
    const owners = groupBy(all, ({ owner }) => owner);
    const changes = all.filter(isChange).sort((x, y) => x.callMs - y.callMs);
    for (const { operation, holder } of withHolder(changes, claims.get(name) ?? [])) {
      const message = withoutRight(operation, owners.get(operation.owner) ?? []) ?? besides(operation, holder);
      findings.decide(name, holder === undefined ? [operation] : [holder.lease.acquire, operation], message);
    }
  }

  const byId = new Map(history.operations.map((operation) => [operation.id, operation]));
  for (const [id, readings] of groupBy(history.observations, ({ operationId }) => operationId)) {
    const operation = byId.get(id);
    const before = readings.find(({ when }) => when === "before");
    const after = readings.find(({ when }) => when === "after");
    if (operation === undefined || before === undefined || after === undefined || operation.outcome !== "no") continue;
    const disturbing = isOneStep
      ? undefined
      : (operations.get(operation.lockName) ?? []).find(
          (other) => other !== operation && mayHaveActed(other, before, after),
        );
    if (disturbing !== undefined) findings.exclude(operation, `operation ${disturbing.id} was in progress`);
    else findings.decide(operation.lockName, [operation, before, after], trace(operation, before, after, epsMs));
  }
  return findings.result();
}

function isChange({ verb, outcome }: Operation): boolean {
  return (verb === "release" || verb === "extend") && outcome === "ok";
}

/** Each change, with another owner that relied on the lock from before its call until after its return, if any. */
function withHolder(
  changes: readonly Operation[],
  claims: readonly LeaseClaim[],
): { readonly operation: Operation; readonly holder: LeaseClaim | undefined }[] {
  let running: LeaseClaim[] = [];
  let next = 0;
  return changes.map((operation) => {
    for (let claim = claims[next]; claim !== undefined && claim.startMs < operation.callMs; claim = claims[next]) {
      running.push(claim);
      next += 1;
    }
    running = running.filter(({ endMs }) => endMs > operation.callMs);
    const holder = running.find(
      ({ endMs, lease }) => endMs > operation.returnMs && lease.acquire.owner !== operation.owner,
    );
    return { operation, holder };
  });
}

function withoutRight(
  { verb, owner, lockName, kind, callMs, returnMs }: Operation,
  own: readonly Operation[],
): string | undefined {
  const begun = own.filter((other) => other.verb === "acquire" && other.outcome !== "no" && other.callMs <= returnMs);
  if (begun.length === 0) return `${verb} of "${lockName}" succeeded for ${owner}, which never had it`;
  // Permits may be released in parts, so the number of releases means nothing; the permits model counts them.
  if (kind === "semaphore") return undefined;
  const ended = own.filter((other) => other.verb === "release" && other.outcome === "ok" && other.returnMs < callMs);
  if (begun.length > ended.length) return undefined;
  return `${verb} of "${lockName}" succeeded for ${owner}, which had released it`;
}

function besides({ verb, owner, lockName }: Operation, holder: LeaseClaim | undefined): string | undefined {
  if (holder === undefined) return undefined;
  return `${verb} of "${lockName}" succeeded for ${owner} while ${holder.lease.acquire.owner} held it`;
}

function mayHaveActed(other: Operation, before: Observation, after: Observation): boolean {
  if (other.outcome === "no") return false;
  const untilMs = other.outcome === "info" ? Number.POSITIVE_INFINITY : other.returnMs;
  return other.callMs <= after.atMs && untilMs >= before.atMs;
}

function trace(operation: Operation, before: Observation, after: Observation, epsMs: number): string | undefined {
  const what = `the refused ${operation.verb} of "${operation.lockName}" by ${operation.owner}`;
  if (before.owner !== after.owner) {
    const hasExpired = after.owner === null && (before.expiresAtMs ?? Number.POSITIVE_INFINITY) <= after.atMs + epsMs;
    return hasExpired ? undefined : `${what} changed its holder from ${before.owner} to ${after.owner}`;
  }
  if (before.expiresAtMs === null || after.expiresAtMs === null) return undefined;
  const byMs = after.expiresAtMs - before.expiresAtMs;
  return Math.abs(byMs) > epsMs ? `${what} moved its expiry by ${showMs(byMs)}` : undefined;
}
