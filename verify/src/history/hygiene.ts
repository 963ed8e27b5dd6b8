/**
 * Keeps histories such that the checker can decide them.
 *
 * Its search grows with the number of operations that are open at the same time, and an operation of unknown outcome is
 * open forever. A workload therefore takes a new lock name before one name has too many of either.
 */
import { groupBy } from "./history.js";
import type { Operation } from "./records.js";

/** How much one lock name may have at the same time. */
export interface HygieneCaps {
  /** More operations at the same time make the search wider. */
  readonly concurrent: number;
  /** More operations of unknown outcome make every later step of the search wider. */
  readonly openInfo: number;
}

/** Starting values; the rule they serve is that the checker never has to answer "unknown". */
export const CAPS: HygieneCaps = Object.freeze({ concurrent: 16, openInfo: 20 });

/** Counts what is open on one lock name while a workload runs. */
export class OpenOperations {
  readonly #caps: HygieneCaps;
  #concurrent = 0;
  #info = 0;

  constructor(caps: HygieneCaps = CAPS) {
    this.#caps = caps;
  }

  /** Whether another operation may begin on this name. False for good once there are too many of unknown outcome. */
  get mayBegin(): boolean {
    return this.#concurrent < this.#caps.concurrent && !this.isWornOut;
  }

  /** Whether the workload has to go on with a new name. */
  get isWornOut(): boolean {
    return this.#info >= this.#caps.openInfo;
  }

  /** An operation was called. */
  began(): void {
    this.#concurrent += 1;
  }

  /** It returned, or is given up waiting for. */
  ended(outcome: Operation["outcome"]): void {
    this.#concurrent -= 1;
    if (outcome === "info") this.#info += 1;
  }
}

/** How wide the history of one lock name is. */
export interface Width {
  readonly lockName: string;
  /** Most operations of known outcome at one instant. */
  readonly concurrent: number;
  readonly openInfo: number;
}

/** The width of each lock name, widest first; one that goes past the caps is a fault of the workload. */
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
  // At the same instant the call counts first, as in the checker: touching operations are concurrent.
  changes.sort((a, b) => (a.atMs === b.atMs ? b.by - a.by : a.atMs - b.atMs));
  let open = 0;
  let most = 0;
  for (const { by } of changes) {
    open += by;
    most = Math.max(most, open);
  }
  return most;
}
