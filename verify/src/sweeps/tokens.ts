/**
 * F1 to F4: properties of fencing tokens.
 *
 * A grant is an acquire, or an upgrade, which gets its own token. For a reentrant lock, only the first hold is a
 * grant; later ones have the same token. Grants with an unknown outcome are ignored, because their token is unknown.
 */
import { groupBy, type History } from "../history/history.js";
import { type Lease, leasesOf } from "../history/leases.js";
import type { HistoryRecord, Operation } from "../history/records.js";
import { Findings, type SweepResult } from "./result.js";

/** A certain grant with a known token. */
interface Grant {
  readonly operation: Operation;
  readonly token: number;
}

/** F1: no two grants of one name have the same token. */
export function uniqueTokens(history: History): SweepResult {
  const findings = new Findings("F1");
  for (const [name, grants] of grantsByLock(history)) {
    const first = new Map<number, Operation>();
    for (const { operation, token } of grants) {
      const earlier = first.get(token);
      if (earlier === undefined) first.set(token, operation);
      const message = earlier && `"${name}" has token ${token} twice: ${earlier.owner} and ${operation.owner}`;
      findings.decide(name, earlier === undefined ? [operation] : [earlier, operation], message);
    }
  }
  return findings.result();
}

/** F2: a grant whose acquire was called after another one returned has the higher token. */
export function risingTokens(history: History): SweepResult {
  const findings = new Findings("F2");
  for (const [name, grants] of grantsByLock(history)) {
    const returned = grants.toSorted((a, b) => a.operation.returnMs - b.operation.returnMs);
    let highest: Grant | undefined;
    let next = 0;
    for (const grant of grants.toSorted((a, b) => a.operation.callMs - b.operation.callMs)) {
      for (let done = returned[next]; done !== undefined && done.operation.returnMs < grant.operation.callMs; ) {
        if (highest === undefined || done.token > highest.token) highest = done;
        next += 1;
        done = returned[next];
      }
      if (highest === undefined) continue;
      const message =
        grant.token > highest.token
          ? undefined
          : `"${name}" gave token ${grant.token} to ${grant.operation.owner} after ${highest.token} to ${highest.operation.owner}`;
      findings.decide(name, [highest.operation, grant.operation], message);
    }
  }
  return findings.result();
}

/** F3: extends, samples and further holds show the token of their grant. */
export function steadyTokens(history: History): SweepResult {
  const findings = new Findings("F3");
  const compare = (grant: Operation, other: HistoryRecord, expected: number | null, token: number | null): void => {
    if (expected === null || token === null) return;
    const message = token === expected ? undefined : `"${grant.lockName}" shows token ${token} for grant ${expected}`;
    findings.decide(grant.lockName, [grant, other], message);
  };
  const leases = leasesOf(history);
  for (const { acquire, later, samples } of leases) {
    const upgrades = later.filter(({ verb, outcome }) => verb === "upgrade" && outcome === "ok");
    const isDoubtfulFromMs = later.find(({ verb, outcome }) => verb === "upgrade" && outcome === "info")?.callMs;
    for (const record of [...later, ...samples]) {
      if (record.type === "operation" && record.verb === "upgrade") continue;
      const startMs = record.type === "operation" ? record.callMs : record.atMs;
      const endMs = record.type === "operation" ? record.returnMs : record.atMs;
      if (isDoubtfulFromMs !== undefined && endMs >= isDoubtfulFromMs) continue;
      // Around an upgrade either token may be shown, so only records clearly before or after it are compared.
      if (upgrades.some(({ callMs, returnMs }) => callMs <= endMs && startMs <= returnMs)) continue;
      const grant = upgrades.findLast(({ returnMs }) => returnMs < startMs) ?? acquire;
      compare(grant, record, grant.token, record.token);
    }
  }
  for (const { hold, first } of furtherHolds(leases)) compare(first, hold, first.token, hold.token);
  return findings.result();
}

/** F4: every token is a whole number that a double represents exactly. */
export function exactTokens(history: History): SweepResult {
  const findings = new Findings("F4");
  for (const record of [...history.operations, ...history.held, ...history.effects]) {
    const { token, lockName } = record;
    if (token === null) continue;
    const isExact = Number.isSafeInteger(token) && token > 0;
    findings.decide(lockName, [record], isExact ? undefined : `"${lockName}" has the token ${token}`);
  }
  return findings.result();
}

function grantsByLock(history: History): Map<string, Grant[]> {
  const further = new Set(Array.from(furtherHolds(leasesOf(history)), ({ hold }) => hold));
  const grants = history.operations.flatMap((operation) => {
    const { verb, outcome, token } = operation;
    const isGrant = (verb === "acquire" || verb === "upgrade") && outcome === "ok" && !further.has(operation);
    return isGrant && token !== null ? [{ operation, token }] : [];
  });
  return groupBy(grants, ({ operation }) => operation.lockName);
}

/**
 * Acquires of a reentrant lock by an owner that already held it, with the first acquire. If its lease ends before the
 * owner notices, the call still succeeds without a new grant.
 */
function furtherHolds(leases: readonly Lease[]): { readonly hold: Operation; readonly first: Operation }[] {
  const reentrant = leases.filter(({ acquire }) => acquire.kind === "reentrant-mutex");
  const found: { readonly hold: Operation; readonly first: Operation }[] = [];
  for (const own of groupBy(reentrant, ({ acquire }) => `${acquire.lockName}\n${acquire.owner}`).values()) {
    let first: Operation | undefined;
    let untilMs = Number.NEGATIVE_INFINITY;
    for (const { acquire, claims, releasedMs } of own) {
      if (first !== undefined && acquire.callMs <= untilMs) found.push({ hold: acquire, first });
      else {
        first = acquire;
        untilMs = Number.NEGATIVE_INFINITY;
      }
      untilMs = Math.max(untilMs, Math.min(releasedMs, claims.at(-1)?.endMs ?? untilMs));
    }
  }
  return found;
}
