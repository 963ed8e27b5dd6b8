/** Sessions at a barrier, and how they are recorded. */
import type { Operation } from "../../history/records.js";
import type { Random } from "../../simulation/random.js";
import type { Barrier, Refused } from "../subject.js";
import { unanswered } from "../subjects/trails.js";
import { monotonicMs } from "../topology/monotonic.js";
import { PARTIES } from "./messages.js";
import type { Ended, Recorder } from "./recorder.js";

/** Calls a barrier and records every call. */
export class BarrierCaller {
  readonly #barrier: Barrier | undefined;
  readonly #recorder: Recorder;
  readonly #process: string;
  #calls = 0;

  constructor(barrier: Barrier | undefined, recorder: Recorder, process: string) {
    this.#barrier = barrier;
    this.#recorder = recorder;
    this.#process = process;
  }

  /**
   * Arrives, or resets. `ok`: it passed, or started a new generation; `no`: the generation broke; `info`: the outcome
   * is unknown.
   */
  async call(lockName: string, act: "arrive" | "reset", waitMs: number): Promise<Operation["outcome"]> {
    const barrier = this.#barrier;
    if (barrier === undefined) throw new TypeError("this subject has no barrier");
    this.#calls += 1;
    const args = act === "arrive" ? { waitMs } : {};
    const begun = { lockName, kind: "barrier", verb: act, args, owner: `${this.#process}|${this.#calls}` } as const;
    const id = this.#recorder.begin(begun);
    const answer = async (): Promise<Omit<Ended, "returnMs">> => {
      if (act === "reset") return { outcome: "ok", result: await barrier.reset(lockName, PARTIES) };
      const { what, generation, index } = await barrier.arrive(lockName, PARTIES, waitMs);
      if (what === "broke") return { outcome: "no", refusal: "gave-up", result: generation };
      return { outcome: "ok", result: generation, ...(index === undefined ? {} : { index }) };
    };
    // A party that timed out may have been counted, and the generation may have passed without it.
    const end = await answer().catch(
      (error: unknown): Pick<Refused, "outcome"> => ({
        outcome: unanswered(error).outcome === "no" ? "no" : "info",
      }),
    );
    this.#recorder.end(id, { ...end, returnMs: monotonicMs() });
    return end.outcome;
  }
}

/** One operation on a barrier, drawn at random. The first party that finds the barrier broken resets it. */
export async function arrivalSession(
  caller: BarrierCaller,
  lockName: string,
  { waitMs }: { readonly waitMs: number },
  random: Random,
): Promise<Operation["outcome"]> {
  const draw = random.between(0, 1);
  const outcome = await caller.call(lockName, "arrive", draw < 0.1 ? 0 : draw < 0.3 ? random.between(1, 200) : waitMs);
  if (outcome === "no" && random.chance(0.7)) return caller.call(lockName, "reset", 0);
  return outcome;
}
