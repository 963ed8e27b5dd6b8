/** L02: a host vanishes without closing its connections; its process holds the lock and has five claims in the queue. */
import type { ServerHandle } from "../stage.js";
import { type Scenario, seconds } from "./theater.js";

const CLAIMS = 5;
/** Long enough to be seen as a hold of a peer that reports no validity. */
const WAITER_HOLDS_MS = 10;
const LEASE_MS = 2_000;
/** How much delay a vanished host may cause in addition to its own lease. */
const COST_MS = 3_000;

/** The inboxes with a subscriber, as counted by that server. */
async function inboxesOn(server: ServerHandle): Promise<number> {
  const channels = await Promise.all(
    ["CHANNELS", "SHARDCHANNELS"].map((sort) => server.command("PUBSUB", sort, "hf:*").catch(() => [])),
  );
  return channels.flat().length;
}

/** Makes the host of the holder vanish. */
export const vanishedHost: Scenario = {
  row: "L02",
  async play(theater) {
    const { lockName, renews, patienceMs, isHoldfast } = theater;
    const [gone, live] = await theater.start(2);
    if (gone === undefined || live === undefined) throw new Error("two processes were started");
    const asking = { lockName, leaseMs: LEASE_MS, waitMs: 2 * patienceMs, renew: renews };
    await gone.call({ verb: "hold", ...asking });
    await gone.call({ verb: "wait", count: CLAIMS, holdMs: WAITER_HOLDS_MS, ...asking });
    await theater.waiting(live, lockName, CLAIMS);
    await live.call({ verb: "wait", count: 1, holdMs: WAITER_HOLDS_MS, ...asking });
    await theater.waiting(live, lockName, CLAIMS + 1);

    const beganMs = theater.nowMs();
    const silenced = gone.lines.silence("all");
    await gone.kill();
    const inboxes = await inboxesOn(await theater.server());
    const granted = await live.happens("granted", lockName, patienceMs);
    // For a peer without validity, a hold without a recorded end does not count.
    if (granted !== undefined) await live.happens("released", lockName, patienceMs);
    // The inboxes of the vanished process and of the live one.
    const isCounted = !isHoldfast || inboxes >= 2;
    theater.struck({
      beganMs,
      endedMs: Number.POSITIVE_INFINITY,
      target: gone.name,
      proof:
        silenced > 0 && isCounted
          ? `${silenced} connections left open, and the server counts ${inboxes} inboxes when the process is gone`
          : null,
    });
    return [
      {
        what: "the next live waiter was granted after",
        value: seconds((granted?.atMs ?? Number.POSITIVE_INFINITY) - beganMs),
        unit: "s",
        most: seconds(LEASE_MS + COST_MS),
      },
    ];
  },
};
