/**
 * Callers of one process that acquire the same lock repeatedly, each soon after the previous release, so that a retained
 * claim serves them. The simulation treats them as a crowd. They use their own random stream.
 */
import { FIRST_CROWD_ID } from "./crowds.js";
import { Random } from "./random.js";
import type { Session } from "./session.js";

const FIRST_ID = FIRST_CROWD_ID + 500;
const FIRST_CROWD = 101;
/** Added to the seed. No other stream uses this number. */
const STREAM = 37 * 4_294_967_296;

/** The callers of a seed; none for kinds whose claims are not retained. */
export function repeatsOf(seed: number, kind: string, processCount: number): Session[] {
  if (kind !== "retained-mutex") return [];
  const random = new Random(seed + STREAM);
  const sessions: Session[] = [];
  const count = random.whole(2, 5);
  for (let nth = 0; nth < count; nth += 1) {
    const process = random.whole(0, processCount - 1);
    const leaseMs = random.pick([500, 1_000, 2_000, 3_000]);
    const gapMs = random.pick([1, 10, leaseMs / 20, leaseMs / 6]);
    let atMs = random.whole(500, 7_000);
    for (let place = random.whole(6, 16); place > 0; place -= 1) {
      sessions.push({
        id: FIRST_ID + sessions.length,
        crowd: FIRST_CROWD + nth,
        process,
        lock: 0,
        atMs,
        isTry: random.chance(0.05),
        waitMs: random.pick([300, 3_000, 8_000, Infinity]),
        leaseMs,
        // A caller that does not renew gets its own claim.
        renew: random.chance(0.95),
        abortAfterMs: null,
        holdMs: random.chance(0.9) ? random.whole(0, 5) : random.whole(6, leaseMs / 2),
        extendMs: random.chance(0.03) ? leaseMs : null,
        end: random.chance(0.97) ? "release" : random.pick(["drop", "export"]),
        amount: 1,
        other: random.whole(0, processCount - 1),
      });
      atMs += Math.ceil(random.between(0, 2) * gapMs);
    }
  }
  return sessions;
}
