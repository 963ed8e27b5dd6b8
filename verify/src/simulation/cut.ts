import type { History } from "../history/index.js";

/** The history up to that instant: operations in progress have an unknown outcome, and later records are left out. */
export function cutAt(history: History, atMs: number): History {
  if (atMs === Number.POSITIVE_INFINITY) return history;
  const before = (record: { readonly atMs: number }): boolean => record.atMs < atMs;
  return {
    ...history,
    operations: history.operations
      .filter(({ callMs }) => callMs < atMs)
      .map((operation) => {
        const { validUntilMs, refusal: _, ...rest } = operation;
        if (operation.returnMs >= atMs)
          return { ...rest, outcome: "info", returnMs: Number.POSITIVE_INFINITY, validUntilMs: null };
        return { ...operation, validUntilMs: validUntilMs === null ? null : Math.min(validUntilMs, atMs) };
      }),
    held: history.held.filter(before).map((sample) => ({
      ...sample,
      validUntilMs: sample.validUntilMs === null ? null : Math.min(sample.validUntilMs, atMs),
    })),
    lost: history.lost.filter(before),
    enqueued: history.enqueued.filter(before),
    missed: history.missed.filter(before),
    effects: history.effects.filter(before),
    finalStates: [],
    observations: history.observations.filter(before),
    keyScans: [],
    turns: history.turns.filter(({ beganMs }) => beganMs < atMs),
    faults: history.faults.filter(({ beganMs }) => beganMs < atMs),
  };
}
