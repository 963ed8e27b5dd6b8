/** L01: ten waiters in five processes are frozen in the queue, ahead of one live waiter. */
import { type Scenario, seconds } from "./theater.js";

const FROZEN = 5;
const WAITERS_EACH = 2;
/** Long enough to be seen as a hold of a peer that reports no validity. */
const WAITER_HOLDS_MS = 10;
const LEASE_MS = 30_000;
/** How much delay one frozen process may cause. */
const COST_MS = 3_000;
/** The tolerance for messages and late timers. */
const SLACK_MS = 1_000;
/** The time by which the resumed processes must have the lock; longer than a lease that one of them left. */
const RECOVERED_WITHIN_MS = 45_000;

/** Freezes waiters ahead of a live one. */
export const frozenQueue: Scenario = {
  row: "L01",
  async play(theater) {
    const { lockName, renews, patienceMs } = theater;
    const [holder, live, ...others] = await theater.start(2 + FROZEN);
    if (holder === undefined || live === undefined) throw new Error("two processes were started");
    const asking = { lockName, leaseMs: LEASE_MS, waitMs: 2 * patienceMs, renew: renews };
    await holder.call({ verb: "hold", ...asking });
    for (const [index, other] of others.entries()) {
      await other.call({ verb: "wait", count: WAITERS_EACH, holdMs: WAITER_HOLDS_MS, ...asking });
      await theater.waiting(holder, lockName, WAITERS_EACH * (index + 1));
    }
    await live.call({ verb: "wait", count: 1, holdMs: WAITER_HOLDS_MS, ...asking });
    await theater.waiting(holder, lockName, WAITERS_EACH * FROZEN + 1);

    const beganMs = theater.nowMs();
    const frozen = await Promise.all(others.map((other) => other.freeze()));
    const isFrozen = frozen.every(Boolean);
    const freedMs = theater.nowMs();
    await holder.call({ verb: "release", lockName });
    const granted = await live.happens("granted", lockName, patienceMs);
    const endedMs = theater.nowMs();
    theater.struck({
      beganMs,
      endedMs,
      target: others.map(({ name }) => name).join(" "),
      proof: isFrozen ? `${FROZEN} processes stood still for ${(endedMs - beganMs).toFixed(0)} ms in the queue` : null,
    });
    for (const other of others) other.resume();
    const resumedMs = theater.nowMs();
    const recovered = await Promise.all(
      others.map((other) => other.happens("granted", lockName, granted === undefined ? 0 : RECOVERED_WITHIN_MS)),
    );
    const lastMs = Math.max(...recovered.map((event) => event?.atMs ?? Number.POSITIVE_INFINITY));
    return [
      {
        what: `${FROZEN * WAITERS_EACH} frozen waiters ahead: the live waiter was granted after`,
        value: seconds((granted?.atMs ?? Number.POSITIVE_INFINITY) - freedMs),
        unit: "s",
        most: seconds(FROZEN * COST_MS + SLACK_MS),
      },
      {
        what: "resumed: the last of the frozen processes was granted after",
        value: seconds(Math.max(0, lastMs - resumedMs)),
        unit: "s",
        most: seconds(RECOVERED_WITHIN_MS),
      },
    ];
  },
};
