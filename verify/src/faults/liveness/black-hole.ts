/** L06: all connections of a process that holds a renewed lease are black-holed. */
import { grantsIn } from "./rates.js";
import { type Scenario, seconds } from "./theater.js";

/** Long enough to count as a hold of a peer that reports no validity. */
const WAITER_HOLDS_MS = 10;
const LEASE_MS = 3_000;
/** How much longer than that lease the next waiter may wait. */
const COST_MS = 3_000;
const HOLD_MS = 20;
const WAIT_MS = 20_000;
const WARM_UP_MS = 1_000;
const BEFORE_MS = 4_000;
const LEAST_SHARE = 90;
/** The number of consecutive acquires requested on the black-holed connections. */
const ASKED = 3;

/** Black-holes the connections of the holder. */
export const blackHole: Scenario = {
  row: "L06",
  async play(theater) {
    const { lockName, patienceMs } = theater;
    const busy = theater.otherName("busy");
    const [cut, ...others] = await theater.start(3);
    const [next] = others;
    if (cut === undefined || next === undefined) throw new Error("processes were started");
    await cut.call({ verb: "hold", lockName, leaseMs: LEASE_MS, waitMs: LEASE_MS, renew: true });
    for (const other of others)
      await other.call({ verb: "contend", lockName: busy, leaseMs: LEASE_MS, waitMs: WAIT_MS, holdMs: HOLD_MS });
    await next.call({
      verb: "wait",
      count: 1,
      holdMs: WAITER_HOLDS_MS,
      lockName,
      leaseMs: LEASE_MS,
      waitMs: 2 * patienceMs,
    });
    await theater.waiting(next, lockName, 1);
    await theater.sleep(WARM_UP_MS + BEFORE_MS);

    const beganMs = theater.nowMs();
    const connections = cut.lines.connections;
    const silenced = cut.lines.silence("all");
    const asked = (async () => {
      let failed = 0;
      for (let count = 0; count < ASKED; count += 1) {
        const { message } = await cut.ask({ lockName: theater.otherName("cut"), leaseMs: LEASE_MS, waitMs: LEASE_MS });
        if (message.startsWith("StoreError")) failed += 1;
        if (count === ASKED - 1) theater.note(`the last of ${ASKED} acquires: ${message || "granted"}`);
      }
      return failed;
    })();
    const [lost, granted, failed] = await Promise.all([
      cut.happens("lost", lockName, patienceMs),
      next.happens("granted", lockName, patienceMs),
      asked,
    ]);
    const endedMs = theater.nowMs();
    theater.struck({
      beganMs,
      endedMs,
      target: cut.name,
      proof: silenced > 0 ? `${silenced} connections black-holed` : null,
    });
    theater.note(`${cut.lines.connections - connections} new connections were tried by the client`);
    const records = theater.records();
    const rate = (fromMs: number, untilMs: number): number =>
      others.reduce((sum, { name }) => sum + grantsIn(records, { process: name, lockName: busy, fromMs, untilMs }), 0) /
      seconds(untilMs - fromMs);
    const lostMs = lost?.atMs ?? Number.POSITIVE_INFINITY;
    const grantedMs = granted?.atMs ?? Number.POSITIVE_INFINITY;
    return [
      { what: "the loss was reported after", value: seconds(lostMs - beganMs), unit: "s", most: seconds(LEASE_MS) },
      {
        what: "the loss was reported before the next grant by",
        value: grantedMs === Number.POSITIVE_INFINITY ? Number.NaN : grantedMs - lostMs,
        unit: "ms",
        least: 0,
      },
      {
        what: "the next waiter was granted after",
        value: seconds(grantedMs - beganMs),
        unit: "s",
        most: seconds(LEASE_MS + COST_MS),
      },
      { what: `of ${ASKED} acquires failed with StoreError:`, value: failed, unit: "", least: ASKED },
      {
        what: "the others had another lock at, in parts of their earlier rate,",
        value: (100 * rate(beganMs, endedMs)) / rate(beganMs - BEFORE_MS, beganMs),
        unit: "%",
        least: LEAST_SHARE,
      },
    ];
  },
};
