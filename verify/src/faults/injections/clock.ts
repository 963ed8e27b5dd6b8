/** J28 to J30: the server's wall clock, by which leases end. */

import type { Injection } from "../injection.js";
import type { ServerHandle, Stage, Work } from "../stage.js";
import { twoHolders } from "./directed.js";
import { aheadOf, contention, keysOf, pauseMs, serverOf, strikeOver } from "./striking.js";

/** How far each server's clock is off by now. It goes on from there, since a jump back to true time is a jump too. */
const offsets = new WeakMap<ServerHandle, number>();

/** What the clocks of two hosts may drift apart between two readings. */
const SLACK_MS = 0.5;

/** Steps by so much from where the clock is. Says how far TIME moved, or null unless it moved so far and not by nothing. */
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

/** The allowance that a holder of such a lease makes for clocks: a step forward may be no larger. */
function allowanceMs(leaseMs: number): number {
  return leaseMs / 100 + 2;
}

/** Leases that are kept to their end, where a clock that is a little off shows. */
function toTheEnd(stage: Stage): Work {
  return { ...contention(stage), holdMs: stage.leaseMs };
}

/** J28: forward by no more than holders allow for, at most once in a lease; or back by up to five minutes. */
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
    // Until the leases that saw this step are over, so that no lease sees two.
    await stage.sleep(1.1 * leaseMs);
    strikeOver(stage, "J28", serverOf(stage).name, beganMs, proof);
  },
};

/** J29: forward by more than the lease, in one step or several, so that the server ends it before its holder does. */
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

/** J30: the clock stands still, so no lease ends; then it goes on from there. */
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
    // On from where it stood: with a jump to true time it would end leases early.
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
