import { BrokenBarrierError } from "holdfast";
import { call } from "../calling.js";
import { hindrances } from "../faults.js";
import { lockOf } from "../lock-of.js";
import type { Kind, Scene } from "../scene.js";
import type { World } from "../world.js";
import { BarrierDecisions, type OwnArrival } from "./barrier-decisions.js";
import { judgeBarrier } from "./barrier-model.js";

/** The number of parties of every barrier. */
const PARTIES = 3;
const PATIENCE_MS = 8_000;

const arrivalsOf = new WeakMap<World, Map<string, OwnArrival[]>>();

const decisionsOf = new WeakMap<World, Map<string, BarrierDecisions>>();

function decisionsOn(world: World, lockName: string): BarrierDecisions {
  const all = decisionsOf.get(world) ?? new Map<string, BarrierDecisions>();
  decisionsOf.set(world, all);
  const decisions = all.get(lockName) ?? new BarrierDecisions();
  all.set(lockName, decisions);
  return decisions;
}

function newArrival({ world, lockName, member: { process } }: Scene): OwnArrival {
  const all = arrivalsOf.get(world) ?? new Map<string, OwnArrival[]>();
  arrivalsOf.set(world, all);
  const arrival: OwnArrival = {
    process,
    callMs: world.nowMs,
    returnMs: Number.POSITIVE_INFINITY,
    end: { what: "unknown" },
  };
  all.set(lockName, [...(all.get(lockName) ?? []), arrival]);
  return arrival;
}

/** A barrier for three parties that is occasionally reset. */
export const barrier: Kind = {
  name: "barrier",
  patienceMs: PATIENCE_MS,

  ran(world, _, call) {
    if (call.script.name.startsWith("barrier/")) decisionsOn(world, lockOf(call)).ran(world, call);
  },

  async run(scene) {
    const { lockName, session, member, world } = scene;
    const lock = member.holdfast.barrier(lockName, { parties: PARTIES });
    const waitMs = session.isTry ? 0 : Math.min(session.waitMs, PATIENCE_MS);
    if (session.end === "force") await lock.reset().catch(() => {});
    await call(
      scene,
      async (signal) => {
        const options = { waitMs, leaseMs: session.leaseMs, label: `s${session.id}`, ...(signal && { signal }) };
        const arrival = newArrival(scene);
        try {
          const passage = await lock.arrive(options);
          world.judge.grantCount += 1;
          arrival.end = { what: "passed", ...passage };
        } catch (error) {
          if (error instanceof BrokenBarrierError) arrival.end = { what: "broke", generation: error.generation };
          throw error;
        } finally {
          arrival.returnMs = world.nowMs;
        }
        return null;
      },
      waitMs,
    );
  },

  finish(world) {
    const { judge, setup } = world;
    for (const [lockName, arrivals] of arrivalsOf.get(world) ?? []) {
      const { wrong, passed } = judgeBarrier(arrivals, PARTIES);
      for (let generation = 0; generation < passed; generation += 1) judge.decided("S1 of a barrier");
      for (const text of wrong) judge.violated("S1", `${lockName}: ${text}`);
      // A server that has lost its memory counts generations from the beginning.
      if (judge.lostAt("exclusion") < Number.POSITIVE_INFINITY) continue;
      const decisions = decisionsOn(world, lockName);
      const heard = decisions.heard(world, arrivals);
      for (let arrival = 0; arrival < heard.told; arrival += 1) judge.decided("L2 of a barrier");
      const causeless = hindrances(setup).length > 0 ? [] : decisions.causeless(arrivals);
      for (const text of [...heard.wrong, ...causeless]) judge.violated("L2", `${lockName}: ${text}`);
    }
  },
};
