/**
 * L2 of a barrier where nothing goes wrong: once a generation has passed or broken on the server, all of its parties are
 * told, and not only at their next question; and what broke has a cause.
 */
import type { Call } from "../network.js";
import { membersOf } from "../observer.js";
import type { World } from "../world.js";
import type { Arrival } from "./barrier-model.js";

/**
 * How long after the decision everybody has returned: a message of 10 ms at most, a question about it, and what is asked of
 * whom broke it.
 */
export const TOLD_MS = 80;

/** Codes of the script: the lease of an arrival ended; somebody began anew. */
const LEASE_ENDED = 1;
const RESET = 5;

/** How a generation ended on the server. */
interface Decision {
  readonly atMs: number;
  /** Undefined if it passed; else the code of the reason. */
  readonly why: number | undefined;
}

/** What the server decided of one barrier, by generation. */
export class BarrierDecisions {
  readonly #decisions = new Map<number, Decision>();
  #resetCount = 0;

  /** A script about it has run. */
  ran({ recorder, nowMs }: World, { script, keys: [key] }: Call): void {
    const observer = recorder.witness?.observer;
    if (observer === undefined) throw new Error("nobody observes the server");
    const before = membersOf(observer.before, key);
    const after = membersOf(observer.after, key);
    const generation = before.get("generation") ?? 1;
    const broken = after.get("broken");
    if (script.name === "barrier/reset") this.#resetCount += 1;
    if (broken !== undefined && broken !== before.get("broken"))
      this.#decisions.set(broken, { atMs: nowMs, why: after.get("why") });
    else if (script.name === "barrier/arrive" && (after.get("generation") ?? 1) > generation)
      this.#decisions.set(generation, { atMs: nowMs, why: undefined });
  }

  /** @returns what is wrong, in words; and how many arrivals were judged */
  judge(arrivals: readonly Arrival[]): { readonly wrong: readonly string[]; readonly told: number } {
    const wrong: string[] = [];
    let told = 0;
    for (const { end, callMs, returnMs } of arrivals) {
      const decision = end.what === "unknown" ? undefined : this.#decisions.get(end.generation);
      if (end.what === "unknown" || decision === undefined) continue;
      told += 1;
      const lateMs = returnMs - Math.max(decision.atMs, callMs);
      if (lateMs > TOLD_MS)
        wrong.push(`generation ${end.generation} ${end.what}, and a party heard of it ${lateMs.toFixed(1)} ms later`);
    }
    const leavers = arrivals.filter(({ end }) => end.what === "unknown").length;
    for (const [generation, { why }] of this.#decisions) {
      if (why === undefined) continue;
      const hasCause = why === RESET ? this.#resetCount > 0 : why !== LEASE_ENDED && leavers > 0;
      if (!hasCause) wrong.push(`generation ${generation} broke for reason ${why}, and nobody had given cause`);
    }
    return { wrong, told };
  }
}
