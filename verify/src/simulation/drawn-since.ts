/**
 * Faults that were added to plans later. They use their own random stream and ids, so that the rest of a seed's
 * plan never changes, and runs that once failed can be replayed.
 */
import type { FaultEvent } from "./fault-event.js";
import { Random } from "./random.js";

/** The largest difference in rate between the clocks of a process and of the server (A1). */
export const RHO = 0.01;

/** Ids from here on belong to these faults. */
const FIRST_ID = 1_001;
/** The random stream: in the upper half of the seed space, which no plan uses. */
const STREAM = 3 * 4_294_967_296;
const DRIFTS_UNTIL_MS = 7_000;

/**
 * The faults to add to the plan of a seed.
 *
 * @param mayBreak  false for a plan without faults, to which only clock drift within the allowed limits is added
 */
export function drawnSince(seed: number, processCount: number, mayBreak: boolean): FaultEvent[] {
  const random = new Random(seed + STREAM);
  const events: FaultEvent[] = [];
  const base = (process: number, atMs: number) => ({ id: FIRST_ID + events.length, atMs, process });
  for (let process = 0; process < processCount; process += 1) {
    // From the beginning, like a quartz with a rate error, or later, like a clock that is being corrected.
    const count = random.pick([0, 1, 1, 2]);
    for (let nth = 0; nth < count; nth += 1) {
      const atMs = nth === 0 && random.chance(0.6) ? 0 : random.whole(0, DRIFTS_UNTIL_MS);
      // The extreme values are where a rule that is too tight breaks first.
      const rate = 1 + random.pick([-RHO, RHO, random.between(-RHO, RHO)]);
      events.push({ ...base(process, atMs), what: "drift", rate });
    }
  }
  if (!mayBreak || !random.chance(0.4)) return events;
  for (let left = random.whole(1, 2); left > 0; left -= 1)
    events.push({
      ...base(random.whole(0, processCount - 1), random.whole(0, DRIFTS_UNTIL_MS)),
      what: "overtake",
      forMs: random.pick([20, 200, random.whole(1, 2_500)]),
      backInMs: random.pick([1, 20, random.whole(1, 1_000)]),
      resends: random.chance(0.5),
      lingersMs: random.whole(1, 4_000),
    });
  return events;
}

/** Whether an id belongs to a session or fault of the original plan. */
export function isOfOld(id: number): boolean {
  return id < FIRST_ID;
}
