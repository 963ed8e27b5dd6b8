/** J08 for a latch, which has no holder: all callers wait for the same event, which happens once for all of them. */
import type { Client, Stage } from "../stage.js";
import { strikeOver } from "./striking.js";

/** The number of calls so far, and how they ended. */
interface Crowd {
  waiting: number;
  passed: number;
  gaveUp: number;
}

/** The time over which calls arrive, their wait limit, and how long the count stays unchanged. */
export interface CrowdTimes {
  readonly gatherMs: number;
  readonly patienceMs: number;
  readonly grownMs: number;
}

/**
 * Each caller waits for the latch, a quarter of them with a shorter limit. When nearly all wait, the count reaches
 * zero.
 *
 * @param callers  the client of each call
 */
export async function waitAtALatch(
  stage: Stage,
  setter: Client,
  callers: readonly Client[],
  { gatherMs, patienceMs, grownMs }: CrowdTimes,
): Promise<void> {
  const { random } = stage;
  const lockName = stage.newName();
  const beganMs = stage.nowMs();
  const set = await setter.latch(lockName, "set-count", 1);
  if (set !== "ok") throw new Error(`${setter.name} could not set a new latch`);
  const crowd: Crowd = { waiting: 0, passed: 0, gaveUp: 0 };
  const all = callers.map(async (client) => {
    const waitMs = random.chance(0.25) ? random.between(gatherMs, patienceMs) : patienceMs;
    await stage.sleep(random.between(0, gatherMs));
    crowd.waiting += 1;
    const outcome = await client.latch(lockName, "await", waitMs);
    crowd.waiting -= 1;
    if (outcome === "ok") crowd.passed += 1;
    else crowd.gaveUp += 1;
  });
  const wanted = 0.95 * callers.length;
  const endMs = stage.nowMs() + grownMs;
  let most = 0;
  while (most < wanted && stage.nowMs() < endMs) {
    await stage.sleep(stage.leaseMs / 2);
    most = Math.max(most, crowd.waiting);
  }
  await setter.latch(lockName, "count-down", 1);
  await Promise.all(all);
  const isCrowd = most >= callers.length / 2 && crowd.passed > 0;
  const proof =
    `${most} of ${callers.length} in ${new Set(callers).size} processes waited at the same time for ${lockName}; ` +
    `${crowd.passed} continued, ${crowd.gaveUp} gave up`;
  strikeOver(stage, "J08", "client", beganMs, isCrowd ? proof : null);
}
