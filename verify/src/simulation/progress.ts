/** Starts sessions, and checks that they end in the fault-free phase. */
import { kindOf } from "./kinds/table.js";
import { RECHECK_MS } from "./kinds/told.js";
import type { Session } from "./plan.js";
import type { Random } from "./random.js";
import type { Kind, Scene } from "./scene.js";
import type { World } from "./world.js";

/** The polling interval of a waiter of protocol 0. */
const OLD_RECHECK_MS = 5_100;
/** Longer than anything that ends by itself can take. */
export const CALM_MS = 120_000;

/** Starts the session if its process is alive. */
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
 * L2 and L3: in the fault-free phase, as long as there are waiters, some caller finishes within a lease (or the
 * patience of a kind that waits for more callers) plus a polling interval.
 *
 * @param quietMs  how long servers may additionally make no grants
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
        `${first.process.name} has waited for ${first.lockName} since ${first.callMs.toFixed(0)}, without progress`,
      );
      return;
    }
    if (world.nowMs < startMs + CALM_MS - 1_000) world.plan(world.nowMs + 500, "look for progress", look);
  };
  look();
}
