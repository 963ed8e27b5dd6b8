/** Sessions on a count-down latch, and how they are recorded. */
import type { Arguments, Operation } from "../../history/records.js";
import type { Random } from "../../simulation/random.js";
import type { Latch, Refused } from "../subject.js";
import { unanswered } from "../subjects/trails.js";
import { monotonicMs } from "../topology/monotonic.js";
import type { LatchVerb } from "./messages.js";
import type { Recorder } from "./recorder.js";

/** Calls a latch and records every call. */
export class LatchCaller {
  readonly #latch: Latch | undefined;
  readonly #recorder: Recorder;
  readonly #process: string;
  #calls = 0;

  constructor(latch: Latch | undefined, recorder: Recorder, process: string) {
    this.#latch = latch;
    this.#recorder = recorder;
    this.#process = process;
  }

  /** Makes one call. A count-down of 0 has no id; any other has its own. */
  async call(lockName: string, verb: LatchVerb, number: number): Promise<Operation["outcome"]> {
    const latch = this.#latch;
    if (latch === undefined) throw new TypeError("this subject has no latch");
    this.#calls += 1;
    const owner = `${this.#process}!${this.#calls}`;
    const hasId = verb === "count-down" && number > 0;
    const args = argumentsOf(verb, number, hasId ? owner : undefined);
    const begun = { lockName, kind: "count-down-latch", verb, args, owner } as const;
    const id = this.#recorder.begin(begun);
    const answer = async (): Promise<boolean | number> => {
      if (verb === "set-count") return latch.setCount(lockName, number);
      if (verb === "count-down") return latch.countDown(lockName, hasId ? owner : undefined);
      return verb === "await" ? latch.await(lockName, number) : latch.count(lockName);
    };
    const end: boolean | number | Refused = await answer().catch(unanswered);
    const returnMs = monotonicMs();
    if (typeof end === "object") {
      const refusal = end.outcome === "no" && end.refusal !== undefined ? { refusal: end.refusal } : {};
      this.#recorder.end(id, { returnMs, outcome: end.outcome, ...refusal });
      return end.outcome;
    }
    const outcome = end === false ? "no" : "ok";
    const refusal = verb === "await" ? "gave-up" : "busy";
    this.#recorder.end(id, {
      returnMs,
      outcome,
      ...(outcome === "no" ? { refusal } : {}),
      ...(typeof end === "number" ? { result: end } : {}),
    });
    return outcome;
  }
}

function argumentsOf(verb: LatchVerb, number: number, callerId: string | undefined): Arguments {
  if (verb === "count-down") return { count: 1, ...(callerId === undefined ? {} : { callerId }) };
  if (verb === "await") return { waitMs: number };
  return verb === "set-count" ? { count: number } : {};
}

/** One operation on a latch, drawn at random. */
export function countDownSession(
  caller: LatchCaller,
  lockName: string,
  { waitMs }: { readonly waitMs: number },
  random: Random,
): Promise<Operation["outcome"]> {
  const draw = random.between(0, 1);
  if (draw < 0.25) return caller.call(lockName, "set-count", random.whole(1, 3));
  if (draw < 0.65) return caller.call(lockName, "count-down", random.whole(0, 1));
  if (draw < 0.85) return caller.call(lockName, "await", Math.min(waitMs, random.between(1, 100)));
  return caller.call(lockName, "count", 0);
}
