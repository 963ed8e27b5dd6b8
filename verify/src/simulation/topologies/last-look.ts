/** L2: at the end each lock is free, and is granted to the next caller. Defines the final calls for each kind. */
import { begin } from "../progress.js";
import { Random } from "../random.js";
import type { Kind } from "../scene.js";
import type { Session } from "../session.js";
import type { TopologyPlan } from "./plan.js";
import type { TopologyWorld } from "./world.js";

/** Ids from here on belong to the final calls. */
const LAST_ID = 20_000;

/** The final calls of a lock: the amounts of the simultaneous callers in each group. */
interface LastCalls {
  readonly groups: readonly (readonly number[])[];
  /** Whether the first group begins with a forced reset, which repairs a broken barrier. */
  readonly isForced?: true;
  /** The number of calls that must succeed. */
  readonly grants: number;
}

const ANYTHING: LastCalls = { groups: [[1]], grants: 1 };
/** All permits, or the write lock. */
const EVERYTHING: LastCalls = { groups: [[4]], grants: 1 };

const LAST_CALLS: ReadonlyMap<string, LastCalls> = new Map([
  ["semaphore", EVERYTHING],
  ["read-write-lock", EVERYTHING],
  ["barrier", { groups: [[1], [1, 1]], grants: 3, isForced: true }],
  // Sets the latch if necessary; one client waits; and the latch is counted down from at most three.
  ["count-down-latch", { groups: [[1], [4], [2, 2, 2]], grants: 1 }],
]);

/** The time between two groups of callers. */
const APART_MS = 1_000;

/** Runs the final calls and checks their results. */
export async function takeAll(world: TopologyWorld, plan: TopologyPlan, run: Kind["run"]): Promise<void> {
  const [example] = plan.sessions;
  if (example === undefined) return;
  const { groups, grants, isForced } = LAST_CALLS.get(plan.kind) ?? ANYTHING;
  const { grantCount } = world.judge;
  const locks = [...new Set(plan.sessions.map(({ lock }) => lock))];
  let id = LAST_ID;
  const call = (lock: number, amount: number, place: number, end: Session["end"]): void => {
    const session = {
      ...example,
      id,
      lock,
      amount,
      other: 0,
      process: place % world.members.length,
      atMs: world.nowMs,
      isTry: false,
      // A latch is not held by any client.
      renew: false,
      waitMs: plan.longestMs + 8_000,
      abortAfterMs: null,
      holdMs: 1,
      extendMs: null,
      end,
    };
    id += 1;
    begin(world, session, new Random(plan.seed * 4_096 + session.id), run);
  };
  for (const [group, amounts] of groups.entries()) {
    const end = group === 0 && isForced ? "force" : "release";
    locks.forEach((lock, at) => {
      for (const [place, amount] of amounts.entries()) call(lock, amount, group + at + place, end);
    });
    await world.runUntil(world.nowMs + APART_MS);
  }
  await world.runUntil(world.nowMs + plan.longestMs + 10_000);
  const granted = world.judge.grantCount - grantCount;
  if (granted < grants * locks.length)
    world.judge.violated("L2", `in the end only ${granted} of ${grants * locks.length} calls for locks are granted`);
}
