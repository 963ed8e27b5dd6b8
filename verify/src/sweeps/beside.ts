/** Who may hold a lock beside others, as far as a history tells: for kinds that several hold at once. */
import { groupBy, type History } from "../history/history.js";
import type { Kind, Operation } from "../history/records.js";
import { killsOf } from "./faults.js";

/** Whether several hold it at once, each for itself, so that the end of one need not let anybody in. */
export function isShared(kind: Kind): boolean {
  return kind === "semaphore" || kind === "read-write-lock";
}

/** Until when the server may keep anything of a lock but for two acquires; -Infinity if it never does. */
export type Beside = (lease: Operation, waiter: Operation) => number;

/**
 * For each pair of an acquire that ends and another one that waits: from when on nobody else may hold that lock.
 *
 * Counts whoever had returned when the waiter did: who was granted, up to a release that succeeded or the end of its
 * longest lease; who was refused or is unknown, as if it had been granted as it left, since its leaving may have crossed that.
 *
 * @param rho  largest difference of two clocks' rates
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
  // A request of a process that is gone may still be carried out, but none that it had not sent.
  const diedMs = new Map(killsOf(history).map(({ process, atMs }) => [process, atMs]));
  const leftMs = ({ returnMs, process }: Operation): number =>
    Math.min(returnMs, diedMs.get(process) ?? Number.POSITIVE_INFINITY);
  const endOf = (acquire: Operation): number => {
    const own = later.get(acquire.id) ?? [];
    const released = own.find(({ verb, outcome }) => verb === "release" && outcome === "ok");
    if (released !== undefined) return released.returnMs;
    // Busy is an answer, and one that grants nothing.
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
