/**
 * Sessions that plans did not have from the beginning, each of which does something else besides: forces by a token, takes
 * several locks of which one is not a mutex, makes permits fewer or more.
 *
 * Drawn from a stream of their own and with ids of their own, for the same reason as in drawn-since.ts.
 */
import { Random } from "./random.js";
import type { Session } from "./session.js";

/** Ids from here on are of these. */
const FIRST_ID = 3_001;
/** In the upper half of what a seed is made of, where nothing else is drawn from. */
const STREAM = 11 * 4_294_967_296;

/** What they do in each kind. Of those that are a mutex on the server one is enough, and one of those that share claims. */
const WAYS: ReadonlyMap<string, readonly NonNullable<Session["way"]>[]> = new Map([
  ["reentrant-mutex", ["by-token"]],
  ["election", ["by-token"]],
  ["semaphore", ["by-token", "by-token", "by-token", "resize"]],
  ["multi-lock", ["with-permits"]],
]);

const LEASES = [100, 250, 1_000, 2_000] as const;
const WAITS = [300, 3_000, 8_000, Infinity] as const;
const BEGINS_UNTIL_MS = 8_000;

/** Those of a seed; none for a kind in which there is nothing else to do, and for most seeds of the others. */
export function newcomersOf(seed: number, kind: string, processCount: number, lockCount: number): Session[] {
  const random = new Random(seed + STREAM);
  const ways = WAYS.get(kind);
  if (ways === undefined || !random.chance(0.4)) return [];
  // All of a seed do the same: whether anybody changes how many there are decides what can be judged.
  const way = random.pick(ways);
  const together = random.whole(0, BEGINS_UNTIL_MS - 2_000);
  // A single try that fails halfway is rare.
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
