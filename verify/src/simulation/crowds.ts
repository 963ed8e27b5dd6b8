/**
 * Crowds: callers of one process that want the same lock at about the same time, with the same lease length and
 * label, so that they share a claim. Most of their holds are short, so that a lease is passed from one to the next.
 *
 * Uses its own random stream and its own ids, for the same reason as drawn-since.ts.
 */
import { Random } from "./random.js";
import type { Session } from "./session.js";

/** Ids from here on belong to sessions in crowds. */
export const FIRST_CROWD_ID = 2_001;
/** The random stream: in the upper half of the seed space, which nothing else uses. */
const STREAM = 7 * 4_294_967_296;

/** Kinds of locks whose callers in one process share a claim. */
const SHARING: ReadonlySet<string> = new Set(["mutex", "reentrant-mutex", "multi-lock", "condition", "retained-mutex"]);

const LEASES = [100, 250, 1_000, 2_000] as const;
const WAITS = [20, 300, 3_000, 8_000, Infinity, Infinity] as const;
/** The times in ms over which the callers of a crowd arrive. The longest one exceeds the duration of a batch. */
const SPREADS = [0, 2, 10, 60] as const;
const BEGINS_UNTIL_MS = 7_000;

/** The crowds of a seed; none for kinds without shared claims, and for most seeds of other kinds. */
export function crowdsOf(seed: number, kind: string, processCount: number, lockCount: number): Session[] {
  const random = new Random(seed + STREAM);
  if (!SHARING.has(kind) || !random.chance(0.35)) return [];
  const sessions: Session[] = [];
  const together = random.chance(0.6) ? random.whole(0, 400) : random.whole(0, BEGINS_UNTIL_MS);
  const count = random.pick([1, 2, 2, 3]);
  for (let crowd = 1; crowd <= count; crowd += 1) {
    const process = random.whole(0, processCount - 1);
    const lock = random.chance(0.8) ? 0 : random.whole(0, lockCount - 1);
    const beginMs = together + random.whole(0, 30);
    const leaseMs = random.pick(LEASES);
    const spreadMs = random.pick(SPREADS);
    // Sometimes larger than the number of tokens that a grant reserves.
    const isLarge = random.chance(0.06);
    const size = isLarge ? largeSize(random.whole(33, 40)) : random.whole(2, 9);
    // Short holds, so that a grant serves as many callers as it can before its lease ends.
    const isSwift = isLarge ? random.chance(0.7) : random.chance(0.1);
    for (let place = 0; place < size; place += 1) {
      const isShort = random.chance(0.88);
      sessions.push({
        id: FIRST_CROWD_ID + sessions.length,
        crowd,
        process,
        lock,
        atMs: beginMs + random.whole(0, spreadMs),
        isTry: random.chance(0.04),
        waitMs: random.pick(WAITS),
        leaseMs,
        renew: random.chance(0.6),
        abortAfterMs: random.chance(0.1) ? random.whole(0, random.pick([5, 50, 1_000])) : null,
        holdMs: isSwift ? 0 : isShort ? random.whole(0, 8) : random.whole(9, leaseMs * 1.5),
        extendMs: random.chance(isSwift ? 0 : 0.06) ? random.pick(LEASES) : null,
        end: random.chance(isSwift ? 0.998 : 0.92) ? "release" : random.pick(["drop", "export", "force"]),
        // In runs of multi-locks, these callers want only one of the locks.
        amount: kind === "multi-lock" ? 1 : random.whole(1, 4),
        other: random.whole(0, processCount - 1),
      });
    }
  }
  return sessions;
}

/** The label of a session's claims, which all sessions of a crowd share. */
export function labelOf({ id, crowd }: Pick<Session, "id" | "crowd">): string {
  return crowd === undefined ? `s${id}` : `c${crowd}`;
}

/** Whether a claim with that label belongs to a crowd. */
export function isOfCrowd(label: string | undefined): boolean {
  return label?.startsWith("c") === true;
}

/**
 * One in four is large enough for the largest number of reserved tokens. It is derived from the same draw, so that other
 * seeds do not change.
 */
function largeSize(drawn: number): number {
  return drawn < 39 ? drawn : 4 * drawn;
}
