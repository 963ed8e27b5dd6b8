/**
 * How long a grant by message lasts until it is confirmed, and processes that fail in that time.
 *
 * Most leases of a run are shorter than the 3 s of production, so two runs in three use a shorter hand-off, in
 * proportion to a typical lease. Uses its own random stream and ids, for the same reason as drawn-since.ts.
 */
import type { FaultEvent } from "./fault-event.js";
import { Random } from "./random.js";
import { FAIR } from "./weather.js";

/** The value of production. */
const HAND_OFF_MS = 3_000;
/** A third, a half and all of typical leases, and the value of production. */
const HAND_OFFS = [170, 330, 670, 250, 500, 1_000, HAND_OFF_MS, HAND_OFF_MS, HAND_OFF_MS] as const;

/** Ids from here on belong to these faults. */
const FIRST_ID = 4_001;
/** The random streams: in the upper half of the seed space, which nothing else uses. */
const STREAM = { length: 19 * 4_294_967_296, faults: 23 * 4_294_967_296 };
const BEGINS_UNTIL_MS = 5_500;
/** A process stalls at the first grant by message within this time. */
export const ARMED_MS = 2_000;

/** Longer than any hand-off plus the next poll of a waiter. */
const LONGEST_STALL_MS = 8_000;
/** When all faults of a run that has only these have ended. */
export const STALLS_END_MS: number = BEGINS_UNTIL_MS + ARMED_MS + 300 + LONGEST_STALL_MS + 200;

/** The length of a grant by message in the run of a seed, in ms. */
export function handOffMsOf(seed: number): number {
  return new Random(seed + STREAM.length).pick(HAND_OFFS);
}

/**
 * Processes that freeze when they are granted a lock, freeze at any time, or receive no messages while the server
 * considers them subscribed.
 */
export function stallsOf(seed: number, processCount: number, isOnlyThat: boolean): FaultEvent[] {
  const random = new Random(seed + STREAM.faults);
  if (!isOnlyThat && !random.chance(0.3)) return [];
  const count = isOnlyThat ? random.whole(2, 5) : random.whole(1, 2);
  return Array.from({ length: count }, (_, place): FaultEvent => {
    const base = {
      id: FIRST_ID + place,
      atMs: random.whole(0, BEGINS_UNTIL_MS),
      process: random.whole(0, processCount - 1),
    };
    const forMs = random.chance(0.4)
      ? random.whole(50, 1_000)
      : random.whole(1_000, isOnlyThat ? LONGEST_STALL_MS : 3_500);
    switch (random.pick(["stall", "stall", "stall", "freeze", "deaf"] as const)) {
      case "stall": {
        const from = random.pick(["pushed", "heard"] as const);
        return { ...base, what: "stall", from, lagMs: random.pick([0, 0, random.whole(0, 300)]), forMs };
      }
      case "freeze":
        return { ...base, what: "freeze", forMs, suspended: false };
      default:
        return { ...base, what: "weather", forMs, weather: { ...FAIR, messageLoss: 1 } };
    }
  });
}
