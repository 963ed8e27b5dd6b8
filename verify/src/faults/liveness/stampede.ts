/** L07: five thousand callers of one process, who wait for one name, give up at one instant. */
import { type Scenario, seconds } from "./theater.js";

const CALLERS = 5_000;
/** Long enough for all of them to have begun. */
const WAIT_MS = 8_000;
const LEASE_MS = 2_000;
/** The lock that they wait for is held for longer than they do. */
const HELD_MS = 60_000;
/** Their timers run out in a few turns of the event loop, each of which may ask once who holds the lock. */
const TURNS = 25;

/** See the file header. */
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
    // Rejections are seen when the answer is awaited.
    answered.catch(() => {});
    await theater.sleep(WAIT_MS - 1_000);
    const [inspectionsBefore, callsBefore] = [inspections(), calls()];
    const { deadlineMs, settledAfterMs, stallMs, timedOut, others, isOtherLost } = await answered;
    // The end of its hold, without which the history of a peer shows no hold at all.
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
