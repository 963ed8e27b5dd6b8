import type { CountDownLatch } from "holdfast";
import { call } from "../lease-program.js";
import type { Kind, Scene } from "../scene.js";
import type { World } from "../world.js";

/** When each latch was open, as the answers of the server's scripts tell. */
interface Doors {
  /** Since when it is shut; Infinity while it is open. */
  shutSinceMs: number;
  /** Settings that have run. */
  readonly requests: Set<string>;
}

const doorsOf = new WeakMap<World, Map<string, Doors>>();

/** A latch that one caller in four sets, two count down, and one waits for. */
export const countDownLatch: Kind = {
  name: "count-down-latch",

  ran(world, { script, keys, args }, outcome, reply) {
    const doors = doorsOf.get(world) ?? new Map<string, Doors>();
    doorsOf.set(world, doors);
    const key = keys[0] ?? "";
    const door = doors.get(key) ?? { shutSinceMs: Infinity, requests: new Set() };
    doors.set(key, door);
    // A late copy is answered as the first was, and does nothing.
    const request = `${script.name} ${args[script.args.indexOf("request")]}`;
    const isAgain = door.requests.has(request);
    if (outcome === "set") door.requests.add(request);
    if (script.name === "count-down-latch/set-count" && outcome === "set" && !isAgain) {
      door.shutSinceMs = Math.min(door.shutSinceMs, world.nowMs);
    }
    if (script.name === "count-down-latch/count-down" && reply === 0) door.shutSinceMs = Infinity;
  },

  async run(scene) {
    const { lockName, session, member, world } = scene;
    const latch = member.holdfast.countDownLatch(lockName);
    if (session.amount === 4) await wait(scene, latch);
    else {
      // Counting is no claim, and has no deadline of its own but that of its requests.
      await call(
        scene,
        async () => {
          await (session.amount === 1
            ? latch.trySetCount(1 + (session.other % 3))
            : latch.countDown(1, session.renew ? { callerId: `caller ${session.other}` } : {}));
          return null;
        },
        0,
      );
    }
    world.judge.lastEndMs = world.nowMs;
  },
};

async function wait(scene: Scene, latch: CountDownLatch): Promise<void> {
  const { session, world, judge, lockName } = scene;
  const waitMs = Math.min(session.waitMs, 8_000);
  const calledMs = world.nowMs;
  let hasPassed = false;
  await call(
    scene,
    async (signal) => {
      await latch.await({ waitMs, label: `s${session.id}`, ...(signal && { signal }) });
      hasPassed = true;
      judge.grantCount += 1;
      return null;
    },
    waitMs,
  );
  const shutSinceMs = [...(doorsOf.get(world) ?? [])].find(([key]) => key.includes(`{${lockName}}`))?.[1].shutSinceMs;
  if (hasPassed && shutSinceMs !== undefined && shutSinceMs < calledMs) {
    judge.violated("S2", `${lockName} let a waiter pass, and was shut all the time`);
  }
}
