import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { unknownVerb } from "./timed.js";

/** The state of a latch between two operations. */
export interface Latch {
  /** The remaining count. Null if it was never set: the latch is then open. */
  readonly left: number | null;
  /** Ids of the callers that have counted down since the count was set, sorted. */
  readonly counted: readonly string[];
}

/**
 * A count that only decreases. At zero, `await` returns and a new count may be set.
 *
 * Holdfast's own model. A caller id counts down once per setting; repetitions succeed without an effect.
 */
export function latch(): Model<Latch, Operation> {
  return {
    name: "latch",
    initial: { left: null, counted: [] },
    key: ({ left, counted }) => JSON.stringify([left, counted]),
    step(state, operation) {
      const { verb, outcome, args, refusal, result } = operation;
      if (outcome === "no" && refusal === "not-sent") return [state];
      const left = state.left ?? 0;
      switch (verb) {
        case "set-count":
          if (outcome === "no") return left > 0 ? [state] : [];
          return left === 0 ? [{ left: args.count ?? 1, counted: [] }] : [];
        case "count-down":
          if (outcome === "no") return left === 0 ? [state] : [];
          return countDown(state, operation).filter((next) => result === undefined || result === (next.left ?? 0));
        case "await":
          if (outcome === "info") return [state];
          return (outcome === "ok") === (left === 0) ? [state] : [];
        case "count":
          return result === undefined || result === left ? [state] : [];
        default:
          return unknownVerb("latch", operation);
      }
    },
  };
}

function countDown(state: Latch, { args }: Operation): Latch[] {
  const { callerId, count = 1 } = args;
  if (callerId !== undefined && state.counted.includes(callerId)) return [state];
  if (state.left === null || state.left === 0) return [];
  const counted = callerId === undefined ? state.counted : [...state.counted, callerId].sort();
  return [{ left: Math.max(0, state.left - count), counted }];
}
