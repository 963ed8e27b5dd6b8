/** Which guarantees the faults of a run suspend, and for which processes. */
import { groupBy, type History } from "../../history/history.js";
import type { Fault, Missed, Operation, Turn } from "../../history/records.js";
import { EXPIRY, type Unbounded } from "../../models/server-lease.js";

/** By how much two readings of the same instant may differ on the test machine. Defined only here, and never tuned. */
export const EPS_MS = 250;
/** The polling interval of a waiter that gets no message. */
export const POLL_MS = 3_000;
/** How long a directed step of a cell waits for an event that must happen; it decides nothing. */
export const PATIENCE_MS = 5_000;

/** The server loses data: restarts without its memory, promotion without the last writes, eviction, deletion. */
const FORGETS = /^J(?:24|25|26|27|31|32|33|36|37)(?!\d|q|g)/;
/** The server's clock is changed. */
const BENT_CLOCK = /^J(?:28|29|30)(?!\d)/;
/** The server's clock only steps forward within the margin, so that leases end only slightly early. */
const NUDGED_CLOCK = /^J28(?!\d)/;
/** Two such steps within one lease, as a fraction of it; the leases of fault runs are short. */
const NUDGE = 0.03;
/** During these faults, clients cannot be expected to be granted or notified. */
const HINDERS = /^J(?:09|1\d|2\d|3\d)(?!\d)/;
/** Faults that do not affect the server, the connection to it, or anything that a waiter needs. */
const HARMLESS = /^J(?:03|04|06|08|13|21|38)(?!\d)/;

/** Faults that delay or suppress replies. */
const SLOWS = /^J(?:08|09|1\d|2\d|3\d)(?!\d)/;

/** When the server's clock is not reliable, for the models. */
export function unboundedOf({ faults }: History): Unbounded[] {
  return faults.flatMap(({ id, beganMs, endedMs }) => [
    ...(FORGETS.test(id) || (BENT_CLOCK.test(id) && !NUDGED_CLOCK.test(id))
      ? [{ beganMs, endedMs, expiry: "early" as const }]
      : []),
    ...(BENT_CLOCK.test(id) ? [{ beganMs, endedMs, expiry: "late" as const }] : []),
  ]);
}

/** By how much the server's clock may differ from the machine's over a lease, as a fraction of the lease. */
export function driftOf({ faults }: History): number {
  return faults.some(({ id }) => NUDGED_CLOCK.test(id)) ? NUDGE : EXPIRY.rho;
}

/** Ids of the faults of this run during which no grant can be expected. */
export function hinderingOf({ faults }: History): ReadonlySet<string> {
  return new Set(faults.map(({ id }) => id).filter((id) => HINDERS.test(id) && !HARMLESS.test(id)));
}

/** Faults during which, and for a while after which, a reply may be late. */
export function slowTimesOf({ faults }: History): Fault[] {
  return faults.filter(({ id }) => SLOWS.test(id));
}

/**
 * Waiters that the server may have considered dead, or that may have lost their place: their process was frozen or
 * cut off while they waited, or the server was hit. A fault has effects for a while after its end.
 */
export function missedOf({ faults, operations, enqueued }: History): Missed[] {
  const waiting = new Set(enqueued.map(({ operationId }) => operationId));
  const disturbing = faults.filter(({ id }) => !HARMLESS.test(id));
  if (disturbing.length === 0) return [];
  const processes = new Set(operations.map(({ process }) => process));
  return operations
    .filter(({ id }) => waiting.has(id))
    .flatMap((operation) => {
      const fault = disturbing.find((other) => disturbs(other, operation, processes));
      if (fault === undefined) return [];
      const { id: operationId, lockName, callMs } = operation;
      return [{ type: "missed" as const, atMs: Math.max(callMs, fault.beganMs), lockName, operationId }];
    });
}

function disturbs(fault: Fault, { process, callMs, returnMs }: Operation, processes: ReadonlySet<string>): boolean {
  if (processes.has(fault.target) && fault.target !== process) return false;
  return fault.beganMs <= returnMs && fault.endedMs + POLL_MS >= callMs;
}

/** Times in which a process did not run, or ran only one task, for longer than the tolerance. */
export function pausesOf(
  turns: readonly Turn[],
): Map<string, { readonly beganMs: number; readonly endedMs: number }[]> {
  const pauses = new Map<string, { readonly beganMs: number; readonly endedMs: number }[]>();
  for (const [process, own] of groupBy(turns, (turn) => turn.process)) {
    const found: { readonly beganMs: number; readonly endedMs: number }[] = [];
    let lastMs = Number.NEGATIVE_INFINITY;
    for (const { endedMs } of own.toSorted((a, b) => a.beganMs - b.beganMs)) {
      if (Number.isFinite(lastMs) && endedMs - lastMs > EPS_MS / 2) found.push({ beganMs: lastMs, endedMs });
      lastMs = endedMs;
    }
    pauses.set(process, found);
  }
  return pauses;
}
