/** The end of a Holdfast, and what its process holds: told in words that people and scripts read. */
import type { Runtime } from "./runtime.js";

/** A lease of this process. A snapshot. */
export interface HeldLease {
  readonly kind: string;
  /** Name of the lock. */
  readonly name: string;
  readonly token: number;
  readonly owner: string;
  /** The `label` option of its acquire; undefined if it gave none. */
  readonly label: string | undefined;
  /** Time of the grant as this process saw it. */
  readonly acquiredAt: Date;
  /** How long it may be relied on from now, in ms. */
  readonly validForMs: number;
}

/** How to close. */
export interface CloseOptions {
  /**
   * Longest wait for the work under leases that are held, in ms: nothing is given back under it. Longer lets more work end;
   * it must end before whoever stops the process loses patience. Whole milliseconds, 0 to 86 400 000. Absent: leases are
   * given back at once, whatever runs under them.
   */
  readonly graceMs?: number | undefined;
}

/** What has become of the leases that were held when it began to close. Those that were lost meanwhile are in neither. */
export interface CloseOutcome {
  readonly released: readonly HeldLease[];
  /** Not given back, as far as is known: others get these when they have run out. */
  readonly unsettled: readonly HeldLease[];
}

/** How a hold ended that was asked to. */
export type Settled = "released" | "lost" | "unknown";

/** Whatever is alive in a Holdfast until it closes. Only who holds has more than the first two. */
export interface Closable {
  /** This Holdfast closes: stop waiting, give back what is held. Never rejects. */
  close(): Promise<void>;
  /** Whether it waits for something that a Holdfast which closes does not want any more. @default true, unless it holds */
  readonly waits?: boolean | undefined;
  /** What it holds; nothing, if that is over by now. */
  held?(): readonly HeldLease[];
  /** Its work is to end, and its lease with it. Resolves when the lease is over, to how. Never rejects. */
  finish?(): Promise<Settled>;
  /** Nobody waits for its work any longer. It keeps what it holds for as long as that lasts by itself. */
  leaveToExpire?(): void;
  /** Whether `close` has given it back; undefined before. */
  readonly givenBack?: Promise<boolean> | undefined;
}

/** All that is held, by whoever answers for it. */
export function heldBy(occupants: readonly Closable[]): HeldLease[] {
  return occupants.flatMap((occupant) => occupant.held?.() ?? []);
}

/**
 * Ends all waits, asks all who hold to end their work, and waits for them: each gives back what it holds when it is done.
 * Whoever is not done by the end of the grace keeps its lease, which nobody renews any more, so that nothing is given to
 * others while it works.
 *
 * @param cut  called at once, with what ends the grace before its time
 */
export async function settle(
  occupants: readonly Closable[],
  runtime: Runtime,
  graceMs: number,
  cut: (end: () => void) => void,
): Promise<CloseOutcome> {
  // Waits first: whoever is asked to end may be in the middle of acquiring more.
  for (const occupant of occupants) if (occupant.held === undefined && occupant.waits !== false) void occupant.close();
  const holders = occupants.flatMap((occupant) => {
    const [lease] = occupant.held?.() ?? [];
    return lease === undefined || occupant.finish === undefined ? [] : [{ occupant, lease, end: occupant.finish() }];
  });
  await new Promise<void>((resolve) => {
    // Whoever works keeps the process alive, if it is to be.
    const timer = runtime.startTimer(resolve, graceMs, false);
    cut(resolve);
    void Promise.all(holders.map(({ end }) => end)).then(() => {
      timer.cancel();
      resolve();
    });
  });
  for (const { occupant } of holders) occupant.leaveToExpire?.();
  const ends = await Promise.all(holders.map(async ({ lease, end }) => ({ lease, end: await end })));
  const those = (which: Settled): HeldLease[] => ends.flatMap(({ lease, end }) => (end === which ? lease : []));
  return { released: those("released"), unsettled: those("unknown") };
}
