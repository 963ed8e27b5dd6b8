/** L07: five thousand callers in one process wait for the same name and time out at the same instant. */
import { type Scenario, seconds } from "./theater.js";

const CALLERS = 5_000;
/** Long enough to start all of them. */
const WAIT_MS = 8_000;
const LEASE_MS = 2_000;
/** The lock is held for longer than they wait. */
const HELD_MS = 60_000;
/** Their timers fire within a few turns of the event loop, each of which may send one request for the holder. */
const TURNS = 25;

/** Makes thousands of callers time out together. */
export const stampede: Scenario = {
  row: "L07",
  async play(theater) {
    const { lockName, renews } = theater;
    const [holder, crowd] = await theater.start(2);
    if (holder === undefined || crowd === undefined) throw new Error("two processes were started");
    await holder.call({ verb: "hold", lockName, leaseMs: HELD_MS, waitMs: HELD_MS, renew: false });
    const inspections = (): number =>
      [...crowd.lines.scripts].reduce((sum, [script, count]) => (script.endsWith("/inspect") ? sum + count : sum), 0);
    const calls = (): number => [...crowd.lines.scripts.values()].reduce((sum, count) => sum + count, 0);
    const answered = crowd.stampede({
      lockName,
      otherName: theater.otherName("kept"),
      count: CALLERS,
      waitMs: WAIT_MS,
      leaseMs: renews ? LEASE_MS : HELD_MS,
      renew: renews,
    });
    // Rejections are handled when the promise is awaited.
    answered.catch(() => {});
    await theater.sleep(WAIT_MS - 1_000);
    const [inspectionsBefore, callsBefore] = [inspections(), calls()];
    const { deadlineMs, settledAfterMs, stallMs, timedOut, others, isOtherLost } = await answered;
    // Records the end of the hold, without which the history of a peer shows no hold.
    await holder.call({ verb: "release", lockName });
    const { granted = 0, ...failed } = others;
    const ended = Object.values(failed).reduce((sum, count) => sum + count, timedOut);
    if (granted > 0) theater.note(`${granted} callers were granted a lock that another process held`);
    theater.struck({
      beganMs: deadlineMs,
      endedMs: deadlineMs + settledAfterMs,
      target: crowd.name,
      proof: ended > CALLERS / 2 ? `${ended} callers gave up together` : null,
    });
    for (const [word, count] of Object.entries(failed)) theater.note(`${count} callers ended with ${word}`);
    const measures = [
      { what: "callers that timed out:", value: timedOut, unit: "", least: CALLERS },
      { what: "script calls from 1 s before the deadline on:", value: calls() - callsBefore, unit: "" },
      { what: "the last caller was told after", value: seconds(settledAfterMs), unit: "s" },
      {
        what: "the event loop stalled (aim < 100 ms, not judged because it depends on the machine) for at most",
        value: stallMs,
        unit: "ms",
      },
    ] as const;
    if (!theater.isHoldfast) return measures;
    return [
      ...measures,
      { what: "of these script calls, inspections:", value: inspections() - inspectionsBefore, unit: "", most: TURNS },
      { what: "other leases of that process that were lost:", value: isOtherLost ? 1 : 0, unit: "", most: 0 },
    ];
  },
};
