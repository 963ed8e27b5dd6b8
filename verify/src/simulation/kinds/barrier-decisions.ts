/**
 * L2 of a barrier: when a generation has passed or broken on the server, all of its parties are notified, without
 * waiting for their next poll. Without faults, a break must have a cause.
 */
import type { Call } from "../network.js";
import { membersOf } from "../observer.js";
import type { SimulatedProcess } from "../process.js";
import type { World } from "../world.js";
import type { Arrival } from "./barrier-model.js";
import { toldByMs } from "./told.js";

/** Result codes of the script: the lease of an arrival ended; the barrier was reset. */
const LEASE_ENDED = 1;
const RESET = 5;

/** An arrival, with its process. */
export type OwnArrival = Arrival & { readonly process: SimulatedProcess };

/** How a generation ended on the server. */
interface Decision {
  readonly atMs: number;
  /** Undefined if it passed; otherwise the code of the reason. */
  readonly why: number | undefined;
}

/** The server's decisions about one barrier, by generation. */
export class BarrierDecisions {
  readonly #decisions = new Map<number, Decision>();
  #resetCount = 0;

  /** Records a script about the barrier. */
  ran({ recorder, nowMs }: World, { script, keys: [key] }: Call): void {
    const observer = recorder.witness?.observer;
    if (observer === undefined) throw new Error("there is no observer of the server");
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

  /** @returns descriptions of late notifications, and the number of judged arrivals */
  heard(world: World, arrivals: readonly OwnArrival[]): { readonly wrong: readonly string[]; readonly told: number } {
    const wrong: string[] = [];
    let told = 0;
    for (const { end, process, callMs, returnMs } of arrivals) {
      const decision = end.what === "unknown" ? undefined : this.#decisions.get(end.generation);
      if (end.what === "unknown" || decision === undefined) continue;
      told += 1;
      if (returnMs <= toldByMs(world, { process, callMs, decidedMs: decision.atMs })) continue;
      const lateMs = returnMs - Math.max(decision.atMs, callMs);
      wrong.push(`generation ${end.generation} ${end.what}, and a party was notified ${lateMs.toFixed(1)} ms later`);
    }
    return { wrong, told };
  }

  /** @returns descriptions of generations that broke without a cause, for runs without faults */
  causeless(arrivals: readonly Arrival[]): readonly string[] {
    const wrong: string[] = [];
    const leavers = arrivals.filter(({ end }) => end.what === "unknown").length;
    for (const [generation, { why }] of this.#decisions) {
      if (why === undefined) continue;
      const hasCause = why === RESET ? this.#resetCount > 0 : why !== LEASE_ENDED && leavers > 0;
      if (!hasCause) wrong.push(`generation ${generation} broke for reason ${why} without a cause`);
    }
    return wrong;
  }
}
