import { BrokenBarrierError } from "holdfast";
import { call } from "../lease-program.js";
import type { Kind } from "../scene.js";
import type { World } from "../world.js";

const PARTIES = 3;

/** How the arrivals of one generation ended. */
interface Generation {
  readonly indexes: number[];
  isBroken: boolean;
}

const generationsOf = new WeakMap<World, Map<string, Generation>>();

function generation(world: World, lockName: string, number: number): Generation {
  const all = generationsOf.get(world) ?? new Map<string, Generation>();
  generationsOf.set(world, all);
  const key = `generation ${number} of ${lockName}`;
  const found = all.get(key) ?? { indexes: [], isBroken: false };
  all.set(key, found);
  return found;
}

/** A barrier for three; now and then somebody resets it. */
export const barrier: Kind = {
  name: "barrier",

  async run(scene) {
    const { lockName, session, member, world } = scene;
    const lock = member.holdfast.barrier(lockName, { parties: PARTIES });
    const waitMs = session.isTry ? 0 : Math.min(session.waitMs, 8_000);
    if (session.end === "force") await lock.reset().catch(() => {});
    await call(
      scene,
      async (signal) => {
        try {
          const options = { waitMs, leaseMs: session.leaseMs, label: `s${session.id}`, ...(signal && { signal }) };
          const passage = await lock.arrive(options);
          world.judge.grantCount += 1;
          world.judge.grantCount += 1;
          generation(world, lockName, passage.generation).indexes.push(passage.index);
        } catch (error) {
          if (error instanceof BrokenBarrierError) generation(world, lockName, error.generation).isBroken = true;
          throw error;
        }
        return null;
      },
      waitMs,
    );
  },

  finish(world) {
    for (const [name, { indexes, isBroken }] of generationsOf.get(world) ?? []) {
      const isOdd = new Set(indexes).size < indexes.length || indexes.some((index) => index < 0 || index >= PARTIES);
      if (isOdd) world.judge.violated("S2", `${name} let its parties pass as ${indexes.join(", ")}`);
      if (isBroken && indexes.length > 0) world.judge.violated("S2", `${name} broke, and let ${indexes.length} pass`);
    }
  },
};
