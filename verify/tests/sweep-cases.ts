/** Cases for the sweeps: a history, and whether one property holds in all of it. */
import { expect, it } from "vitest";
import type { Effect, HistoryRecord, Kind } from "../src/history/records.js";
import type { SweepResult } from "../src/sweeps/index.js";
import { operations } from "./histories.js";

/** Decides one property of a whole history. */
export type Sweep = (records: readonly HistoryRecord[]) => SweepResult;
/** A description of a history, the verdict, and its records. Strings are operations. */
export type Case = readonly [
  property: string,
  verdict: SweepResult["verdict"],
  ...records: readonly (string | HistoryRecord)[],
];

/** Runs each case on the sweep. */
export function judged(sweep: Sweep, kind: Kind, cases: readonly Case[]): void {
  it.each(cases.map(([property, verdict, ...records]) => ({ property, verdict, records })))(
    "$property: $verdict",
    ({ verdict, records }) => {
      const result = sweep(recordsOf(records, kind));
      expect(result.verdict, result.violations.map(({ message }) => message).join("\n")).toBe(verdict);
      for (const { records: shown } of result.violations) expect(shown).not.toEqual([]);
    },
  );
}

/** The records of a case. */
export function recordsOf(records: readonly (string | HistoryRecord)[], kind: Kind): HistoryRecord[] {
  const lines = records.filter((record) => typeof record === "string");
  return [...operations(lines, kind), ...records.filter((record) => typeof record !== "string")];
}

/** The lock name of all cases. */
export const lockName = "orders";
/** A reports whether it holds that lease. */
export const sample = (
  leaseId: number,
  atMs: number,
  isHeld: boolean,
  more: { validUntilMs?: number; token?: number } = {},
): HistoryRecord => ({
  type: "held",
  atMs,
  process: "A",
  lockName,
  leaseId,
  isHeld,
  token: more.token ?? null,
  validUntilMs: more.validUntilMs ?? null,
});
/** A turn of A's event loop. */
export const turn = (beganMs: number, endedMs: number): HistoryRecord => ({
  type: "turn",
  process: "A",
  beganMs,
  endedMs,
});
/** A learns that it has lost that lease. */
export const lost = (leaseId: number, atMs: number): HistoryRecord => ({
  type: "lost",
  atMs,
  process: "A",
  lockName,
  leaseId,
});
/** That process is killed. */
export const killed = (target: string, beganMs: number): HistoryRecord => ({
  type: "fault",
  id: "J03",
  beganMs,
  endedMs: Infinity,
  target,
  proof: "exit signal",
});
/** The server's clock stops. */
export const frozen = (beganMs: number, endedMs: number): HistoryRecord => ({
  type: "fault",
  id: "J30",
  beganMs,
  endedMs,
  target: "server",
  proof: "TIME",
});
/** That acquire is queued, and its caller knows. */
export const queued = (operationId: number, atMs: number): HistoryRecord => ({
  type: "enqueued",
  atMs,
  lockName,
  operationId,
});
/** The owners found in the keys. */
export const scan = (atMs: number, owners: readonly string[], isReachable = true): HistoryRecord => ({
  type: "key-scan",
  atMs,
  lockName,
  owners,
  isReachable,
});
/** The server's state right before or after a call. */
export const seen = (
  operationId: number,
  when: "before" | "after",
  atMs: number,
  owner: string | null,
  expiresAtMs: number | null,
): HistoryRecord => ({ type: "observation", operationId, when, atMs, lockName, owner, expiresAtMs });
/** A write reaches the protected resource. */
export const effect = (
  sequence: number,
  leaseId: number,
  token: number | null,
  more: Partial<Effect> = {},
): HistoryRecord => ({
  type: "effect",
  atMs: sequence,
  resource: "stock",
  sequence,
  process: `P${leaseId}`,
  lockName,
  leaseId,
  token,
  isAccepted: true,
  isAcknowledged: true,
  value: `v${sequence}`,
  ...more,
});
