/** Closing a Holdfast: asks holders to end their work, and reports which leases were released. */
import type { Runtime } from "./runtime.js";

/** A snapshot of a lease that this process holds. */
export interface HeldLease {
  /** Kind of the lock, such as `mutex`. */
  readonly kind: string;
  /** Name of the lock. */
  readonly name: string;
  /** Fencing token of the lease. */
  readonly token: number;
  /** Owner id of the claim that holds the lease. */
  readonly owner: string;
  /** The `label` option of the acquire; undefined if none was given. */
  readonly label: string | undefined;
  /** Time of the grant, according to this process's wall clock. */
  readonly acquiredAt: Date;
  /** How long the holder may rely on the lease, in ms from the time of the snapshot. */
  readonly validForMs: number;
}

/** Options of `close`. */
export interface CloseOptions {
  /**
   * How long to wait for work that runs under a lease. With this option, no lease is released while its work runs.
   * Choose a period that ends before the process is killed. Whole milliseconds, 0 to 86,400,000. If absent, leases are
   * released immediately, even while their work runs.
   */
  readonly graceMs?: number | undefined;
}

/**
 * What happened to the leases that were held when the close began. Leases lost during the close are in neither list.
 */
export interface CloseOutcome {
  /** Leases whose release the server confirmed. Others can acquire these locks now. */
  readonly released: readonly HeldLease[];
  /**
   * Leases whose release the server did not confirm, or that were left to expire. Others can acquire these locks when
   * the leases expire, at the latest.
   */
  readonly unsettled: readonly HeldLease[];
}

/** How a hold ended after `finish` asked it to end. */
export type Settled = "released" | "lost" | "unknown";

/** Anything that a Holdfast must end when it closes. Only holders implement more than the first two members. */
export interface Closable {
  /** Called when the Holdfast closes. Stops waiting and releases all holds. Never rejects. */
  close(): Promise<void>;
  /**
   * Whether this object is waiting for something that a closing Holdfast no longer needs.
   *
   * @default true, unless it holds a lease
   */
  readonly waits?: boolean | undefined;
  /** The leases that this object holds; empty if they have ended. */
  held?(): readonly HeldLease[];
  /** Asks the holder to end its work and its lease. When the lease is over, resolves to how it ended. Never rejects. */
  finish?(): Promise<Settled>;
  /** Called when a close stops waiting for the holder's work. The lease is not released but left to expire. */
  leaveToExpire?(): void;
  /** Resolves to whether `close` has released the lease; undefined before `close`. */
  readonly givenBack?: Promise<boolean> | undefined;
}

/** Returns all leases that the occupants hold. */
export function heldBy(occupants: readonly Closable[]): HeldLease[] {
  return occupants.flatMap((occupant) => occupant.held?.() ?? []);
}

/**
 * Ends all waits, asks all holders to end their work, and waits for them. Each holder releases its lease when its work
 * ends. If a holder is still working when the grace period ends, Holdfast stops renewing its lease and lets the lease
 * expire. So Holdfast never releases a lock while its holder is still working.
 *
 * @param graceMs  how long to wait for the holders, in ms
 * @param cut  called immediately with a function that ends the grace period early
 */
export async function settle(
  occupants: readonly Closable[],
  runtime: Runtime,
  graceMs: number,
  cut: (end: () => void) => void,
): Promise<CloseOutcome> {
  // End the waits first: a holder that is waiting for another lock can end its work only once that wait has ended.
  for (const occupant of occupants) if (occupant.held === undefined && occupant.waits !== false) void occupant.close();
  const holders = occupants.flatMap((occupant) => {
    const [lease] = occupant.held?.() ?? [];
    return lease === undefined || occupant.finish === undefined ? [] : [{ occupant, lease, end: occupant.finish() }];
  });
  await new Promise<void>((resolve) => {
    // This timer does not keep the process alive; running work does that itself if it needs to.
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
