/** J28 to J30: faults of the server's wall clock, which determines when leases end. */

import type { Injection } from "../injection.js";
import type { ServerHandle, Stage, Work } from "../stage.js";
import { twoHolders } from "./directed.js";
import { aheadOf, contention, keysOf, pauseMs, serverOf, strikeOver } from "./striking.js";

/**
 * The current offset of each server's clock. It is kept, because a jump back to the true time would be another fault.
 */
const offsets = new WeakMap<ServerHandle, number>();

/** How far the clocks of two hosts may drift apart between two readings. */
const SLACK_MS = 0.5;

/** Steps the clock by `byMs`. @returns how far TIME moved, or null if it did not move by that much */
export async function stepBy(stage: Stage, byMs: number): Promise<string | null> {
  const server = serverOf(stage);
  const before = await aheadOf(server);
  const offsetMs = (offsets.get(server) ?? 0) + byMs;
  offsets.set(server, offsetMs);
  server.stepClock(offsetMs);
  const after = await aheadOf(server);
  const leastMs = after.leastMs - before.mostMs - SLACK_MS;
  const mostMs = after.mostMs - before.leastMs + SLACK_MS;
  const isMoved = leastMs <= byMs && byMs <= mostMs && !(leastMs <= 0 && 0 <= mostMs);
  return isMoved ? `TIME moved by ${leastMs.toFixed(1)} to ${mostMs.toFixed(1)} ms against this host` : null;
}

/** A holder's clock allowance for a lease of this length. A forward step may not be larger. */
function allowanceMs(leaseMs: number): number {
  return leaseMs / 100 + 2;
}

/** A workload whose leases are held until they end, where a small clock error matters. */
function toTheEnd(stage: Stage): Work {
  return { ...contention(stage), holdMs: stage.leaseMs };
}

/** J28: steps forward within the holders' allowance, at most once per lease; or back by up to five minutes. */
export const smallStep: Injection = {
  row: "J28",
  needsClockShim: true,
  work: toTheEnd,
  async strike(stage) {
    const { leaseMs, random } = stage;
    const isForward = random.chance(0.5);
    const byMs = isForward ? random.between(4, allowanceMs(leaseMs)) : -random.pick([5, 100, leaseMs, 300_000]);
    const beganMs = stage.nowMs();
    const proof = await stepBy(stage, byMs);
    // Waits until all leases that saw this step have ended, so that no lease sees two.
    await stage.sleep(1.1 * leaseMs);
    strikeOver(stage, "J28", serverOf(stage).name, beganMs, proof);
  },
};

/** J29: steps forward by more than the lease, so that the server ends it before its holder does. */
export const forwardStep: Injection = {
  row: "J29",
  needsClockShim: true,
  strike: (stage) =>
    twoHolders(stage, async (lockName, leaseMs) => {
      const beganMs = stage.nowMs();
      const strokes = stage.random.pick([1, 1, 8]);
      const proofs: (string | null)[] = [];
      for (let count = 0; count < strokes; count += 1) proofs.push(await stepBy(stage, (1.5 * leaseMs) / strokes));
      const left = await keysOf(stage, lockName);
      const proof = proofs.includes(null) ? null : `${proofs.at(-1)}, ${strokes} times; ${left.length} keys left`;
      strikeOver(stage, "J29", serverOf(stage).name, beganMs, proof);
    }),
};

/** J30: the clock stops, so that no lease ends, and later continues from there. */
export const frozenClock: Injection = {
  row: "J30",
  needsClockShim: true,
  work: toTheEnd,
  async strike(stage) {
    const server = serverOf(stage);
    const beganMs = stage.nowMs();
    server.freezeClock();
    const first = JSON.stringify(await server.command("TIME"));
    await stage.sleep(pauseMs(stage));
    const last = JSON.stringify(await server.command("TIME"));
    const stoodMs = stage.nowMs() - beganMs;
    // Continues from where it stopped: a jump to the true time would end leases early.
    const offsetMs = (offsets.get(server) ?? 0) - stoodMs;
    offsets.set(server, offsetMs);
    server.stepClock(offsetMs);
    strikeOver(
      stage,
      "J30",
      server.name,
      beganMs,
      first === last ? `TIME stood at ${first} for ${stoodMs.toFixed(0)} ms` : null,
    );
  },
};
