/**
 * Sessions that were added to plans later, each with an additional operation: a forced release by token, a multi-lock
 * with a member that is not a mutex, or a change of the number of permits.
 *
 * They use their own random stream and ids, for the same reason as in drawn-since.ts.
 */
import { Random } from "./random.js";
import type { Session } from "./session.js";

/** Ids from here on belong to these sessions. */
const FIRST_ID = 3_001;
/** The random stream: in the upper half of the seed space, which nothing else uses. */
const STREAM = 11 * 4_294_967_296;

/**
 * The additional operations of each kind. One kind that is a mutex on the server, and one with shared claims, are
 * enough.
 */
const WAYS: ReadonlyMap<string, readonly NonNullable<Session["way"]>[]> = new Map([
  ["reentrant-mutex", ["by-token"]],
  ["election", ["by-token"]],
  ["semaphore", ["by-token", "by-token", "by-token", "resize"]],
  ["multi-lock", ["with-permits"]],
]);

const LEASES = [100, 250, 1_000, 2_000] as const;
const WAITS = [300, 3_000, 8_000, Infinity] as const;
const BEGINS_UNTIL_MS = 8_000;

/** The sessions for a seed; none for a kind without additional operations, and for most seeds of other kinds. */
export function newcomersOf(seed: number, kind: string, processCount: number, lockCount: number): Session[] {
  const random = new Random(seed + STREAM);
  const ways = WAYS.get(kind);
  if (ways === undefined || !random.chance(0.4)) return [];
  // All sessions of a seed do the same, because whether the number of permits changes decides what can be judged.
  const way = random.pick(ways);
  const together = random.whole(0, BEGINS_UNTIL_MS - 2_000);
  // Many sessions, because a single attempt rarely fails halfway.
  const count = way === "with-permits" ? random.whole(4, 14) : random.whole(2, 6);
  return Array.from({ length: count }, (_, place) => {
    const leaseMs = random.pick(LEASES);
    return {
      id: FIRST_ID + place,
      way,
      process: random.whole(0, processCount - 1),
      lock: random.whole(0, lockCount - 1),
      atMs: random.chance(0.5) ? together + random.whole(0, 200) : random.whole(0, BEGINS_UNTIL_MS),
      isTry: random.chance(way === "with-permits" ? 0.7 : 0.5),
      waitMs: random.pick(WAITS),
      leaseMs,
      renew: random.chance(0.6),
      abortAfterMs: random.chance(0.1) ? random.whole(0, 1_000) : null,
      holdMs: random.chance(0.4) ? random.whole(0, 20) : random.whole(1, leaseMs * 2),
      extendMs: null,
      end: way === "by-token" ? random.pick(["release", "force"]) : "release",
      amount: random.whole(1, 4),
      other: random.whole(0, processCount - 1),
    };
  });
}
