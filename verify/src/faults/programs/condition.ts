import type { Outcome } from "../../history/records.js";
import type { Connection } from "../subject.js";
import { unanswered } from "../subjects/trails.js";
import { monotonicMs } from "../topology/monotonic.js";
import type { Recorder } from "./recorder.js";

/** An operation on a condition. */
export interface ConditionCall {
  readonly lockName: string;
  readonly act: "wait" | "signal";
  readonly waitMs: number;
}

let calls = 0;

/** Waits for a signal, or sends one, and records that. Its mutex is not recorded, because only signals count here. */
export async function conditionCall(
  condition: Connection["condition"],
  recorder: Recorder,
  { lockName, act, waitMs }: ConditionCall,
): Promise<{ readonly outcome: Outcome; readonly moved: number }> {
  if (condition === undefined) throw new TypeError("this subject has no condition");
  calls += 1;
  const id = recorder.begin({ lockName, kind: "condition", verb: act, args: { waitMs }, owner: `${act}${calls}` });
  try {
    const moved = await condition(lockName, act, waitMs);
    const outcome = act === "wait" && moved === 0 ? "no" : "ok";
    recorder.end(id, { outcome, result: moved, returnMs: monotonicMs() });
    return { outcome, moved };
  } catch (error) {
    const { outcome } = unanswered(error);
    recorder.end(id, { outcome, returnMs: monotonicMs() });
    return { outcome, moved: 0 };
  }
}
