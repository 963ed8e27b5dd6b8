/** Sessions that begin, and whether they come to an end once nothing goes wrong any more. */
import { kindOf } from "./kinds/table.js";
import { RECHECK_MS } from "./kinds/told.js";
import type { Session } from "./plan.js";
import type { Random } from "./random.js";
import type { Kind, Scene } from "./scene.js";
import type { World } from "./world.js";

/** When a waiter of protocol 0 asks again. */
const OLD_RECHECK_MS = 5_100;
/** Longer than anything can take that ends by itself. */
export const CALM_MS = 120_000;

/** The session begins in its process, if that lives. */
export function begin(
  world: World,
  session: Session,
  random: Random,
  run: Kind["run"] = kindOf(world.setup.kind).run,
): void {
  const member = world.members[session.process];
  if (member === undefined || member.process.isDead) return;
  member.process.enter(() => {
    const scene: Scene = { world, judge: world.judge, session, member, random, lockName: `lock ${session.lock}` };
    world.start(() => run(scene), member);
  });
}

/**
 * L2 and L3: in calm weather somebody comes to an end within a lease (or the patience of those who wait for more to come) and a
 * re-check, as long as anybody waits.
 *
 * @param quietMs  how long servers may grant nothing, besides
 */
export function watchProgress(world: World, quietMs = 0): void {
  const longestMs = Math.max(
    0,
    ...world.setup.sessions.map(({ leaseMs, holdMs, extendMs }) => Math.max(leaseMs, extendMs ?? 0) + 2 * holdMs),
  );
  const recheckMs = world.setup.oldProcess === undefined ? RECHECK_MS : OLD_RECHECK_MS;
  const { patienceMs = 0 } = kindOf(world.setup.kind);
  const windowMs = (Math.max(longestMs, patienceMs) + recheckMs + 1_000 + quietMs) * 1.02;
  const startMs = world.nowMs;
  const look = (): void => {
    const sinceMs = Math.max(world.judge.lastEndMs, startMs);
    const [first] = world.judge.open;
    if (first === undefined && world.running === 0) return;
    if (first !== undefined && world.nowMs - sinceMs > windowMs) {
      world.judge.violated(
        "L2",
        `${first.process.name} waits for ${first.lockName} since ${first.callMs.toFixed(0)}, and nothing happens`,
      );
      return;
    }
    if (world.nowMs < startMs + CALM_MS - 1_000) world.plan(world.nowMs + 500, "look for progress", look);
  };
  look();
}
