/**
 * Keeps histories small enough for the checker.
 *
 * Its search grows with the number of concurrent operations, and an operation with an unknown outcome stays open
 * forever. So a workload switches to a new lock name before one name has too many of either.
 */
import { groupBy } from "./history.js";
import type { Operation } from "./records.js";

/** Limits for one lock name. */
export interface HygieneCaps {
  /** The maximum number of concurrent operations. More make the search wider. */
  readonly concurrent: number;
  /** The maximum number of operations with an unknown outcome. Each makes every later step of the search wider. */
  readonly openInfo: number;
}

/** Default limits, chosen so that the checker never has to return "unknown". */
export const CAPS: HygieneCaps = Object.freeze({ concurrent: 16, openInfo: 20 });

/** Counts the open operations on a lock name while a workload runs. */
export class OpenOperations {
  readonly #caps: HygieneCaps;
  #concurrent = 0;
  #info = 0;

  constructor(caps: HygieneCaps = CAPS) {
    this.#caps = caps;
  }

  /** Whether another operation may begin on this name. Permanently false after too many unknown outcomes. */
  get mayBegin(): boolean {
    return this.#concurrent < this.#caps.concurrent && !this.isWornOut;
  }

  /** Whether the workload must switch to a new name. */
  get isWornOut(): boolean {
    return this.#info >= this.#caps.openInfo;
  }

  /** Records that an operation was called. */
  began(): void {
    this.#concurrent += 1;
  }

  /** Records that it returned, or that the workload no longer waits for it. */
  ended(outcome: Operation["outcome"]): void {
    this.#concurrent -= 1;
    if (outcome === "info") this.#info += 1;
  }
}

/** The concurrency in the history of a lock name. */
export interface Width {
  readonly lockName: string;
  /** The maximum number of concurrent operations with a known outcome. */
  readonly concurrent: number;
  readonly openInfo: number;
}

/** The width of each lock name, widest first. A name that exceeds the limits is an error of the workload. */
export function widths(operations: readonly Operation[]): Width[] {
  const found = Array.from(
    groupBy(operations, ({ lockName }) => lockName),
    ([lockName, all]) => {
      const known = all.filter(({ outcome }) => outcome !== "info");
      const openInfo = all.length - known.length;
      return { lockName, concurrent: mostAtOnce(known), openInfo };
    },
  );
  return found.sort((a, b) => b.concurrent + b.openInfo - (a.concurrent + a.openInfo));
}

function mostAtOnce(operations: readonly Operation[]): number {
  const changes = operations.flatMap(({ callMs, returnMs }) => [
    { atMs: callMs, by: 1 },
    { atMs: returnMs, by: -1 },
  ]);
  // At equal times the call counts first, as in the checker: touching operations are concurrent.
  changes.sort((a, b) => (a.atMs === b.atMs ? b.by - a.by : a.atMs - b.atMs));
  let open = 0;
  let most = 0;
  for (const { by } of changes) {
    open += by;
    most = Math.max(most, open);
  }
  return most;
}
