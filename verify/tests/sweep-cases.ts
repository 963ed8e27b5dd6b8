/** Cases of the sweeps: a history, and whether one property holds over the whole of it. */
import { expect, it } from "vitest";
import type { Effect, HistoryRecord, Kind } from "../src/history/records.js";
import type { SweepResult } from "../src/sweeps/index.js";
import { operations } from "./histories.js";

/** What decides one property of a whole history. */
export type Sweep = (records: readonly HistoryRecord[]) => SweepResult;
/** What a history shows, and what is in it: lines are operations, the rest is what else was seen. */
export type Case = readonly [
  property: string,
  verdict: SweepResult["verdict"],
  ...records: readonly (string | HistoryRecord)[],
];

/** Runs each case on the sweep: lines are operations, the rest is what else was seen. */
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

/** The name that all of these are about. */
export const lockName = "orders";
/** A says of that lease whether it holds. */
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
/** A is told that it has lost that lease. */
export const lost = (leaseId: number, atMs: number): HistoryRecord => ({
  type: "lost",
  atMs,
  process: "A",
  lockName,
  leaseId,
});
/** That process dies. */
export const killed = (target: string, beganMs: number): HistoryRecord => ({
  type: "fault",
  id: "J03",
  beganMs,
  endedMs: Infinity,
  target,
  proof: "exit signal",
});
/** The server's clock stands still. */
export const frozen = (beganMs: number, endedMs: number): HistoryRecord => ({
  type: "fault",
  id: "J30",
  beganMs,
  endedMs,
  target: "server",
  proof: "TIME",
});
/** That acquire has a place in the queue, and its caller knows. */
export const queued = (operationId: number, atMs: number): HistoryRecord => ({
  type: "enqueued",
  atMs,
  lockName,
  operationId,
});
/** Who is found in the keys. */
export const scan = (atMs: number, owners: readonly string[], isReachable = true): HistoryRecord => ({
  type: "key-scan",
  atMs,
  lockName,
  owners,
  isReachable,
});
/** The server is read right before or after a call. */
export const seen = (
  operationId: number,
  when: "before" | "after",
  atMs: number,
  owner: string | null,
  expiresAtMs: number | null,
): HistoryRecord => ({ type: "observation", operationId, when, atMs, lockName, owner, expiresAtMs });
/** A write reaches what is guarded. */
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
