/** Which other clients may hold a lock at the same time, according to a history, for kinds with several holders. */
import { groupBy, type History } from "../history/history.js";
import type { Kind, Operation } from "../history/records.js";
import { killsOf } from "./faults.js";

/** Whether there may be several independent holders, so that the end of one hold need not make room for a waiter. */
export function isShared(kind: Kind): boolean {
  return kind === "semaphore" || kind === "read-write-lock";
}

/** When the server can no longer keep anything of a lock besides two given acquires; -Infinity if it never did. */
export type Beside = (lease: Operation, waiter: Operation) => number;

/**
 * For each pair of an ending hold and a waiter: the time from which there can be no other holder of that lock.
 *
 * It counts every caller that had called before the waiter returned. A granted caller counts until a successful
 * release or the end of its longest lease. A caller that was refused, or whose outcome is unknown, counts as if it
 * had been granted when it left, because it may have been granted just as it left.
 *
 * @param rho  the largest difference in rate between two clocks
 */
export function besides(history: History, rho: number): Beside {
  const acquires = groupBy(
    history.operations.filter(({ verb, kind }) => verb === "acquire" && isShared(kind)),
    ({ lockName }) => lockName,
  );
  const later = groupBy(
    history.operations.filter(({ verb }) => verb !== "acquire"),
    ({ leaseId }) => leaseId,
  );
  // A request of a killed process may still be executed, but only if it was sent before.
  const diedMs = new Map(killsOf(history).map(({ process, atMs }) => [process, atMs]));
  const leftMs = ({ returnMs, process }: Operation): number =>
    Math.min(returnMs, diedMs.get(process) ?? Number.POSITIVE_INFINITY);
  const endOf = (acquire: Operation): number => {
    const own = later.get(acquire.id) ?? [];
    const released = own.find(({ verb, outcome }) => verb === "release" && outcome === "ok");
    if (released !== undefined) return released.returnMs;
    // "busy" is a reply without a grant.
    if (acquire.outcome === "no" && acquire.refusal !== "gave-up") return Number.NEGATIVE_INFINITY;
    const begun = [acquire, ...own.filter(({ verb, outcome }) => verb === "extend" && outcome !== "no")];
    return Math.max(...begun.map((each) => leftMs(each) + (each.args.leaseMs ?? 0) * (1 + rho)));
  };
  const ends = new Map([...acquires.values()].flat().map((acquire) => [acquire, endOf(acquire)]));
  return (lease, waiter) =>
    (acquires.get(waiter.lockName) ?? [])
      .filter((other) => other !== waiter && other.id !== lease.leaseId && leftMs(other) <= waiter.returnMs)
      .reduce((last, other) => Math.max(last, ends.get(other) ?? 0), Number.NEGATIVE_INFINITY);
}
