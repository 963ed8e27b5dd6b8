/**
 * S1 of a barrier: whether the results of its callers have an order that a sequential barrier allows.
 *
 * An arrival returns only when others have arrived, so there are no single steps to try. But each generation passes
 * at one instant at which all of its parties are present, and generations pass in the order of their numbers. Such
 * instants exist if and only if they can be chosen in that order, each between the last call and the first return of
 * its parties. So it is enough to choose each as early as possible.
 */

/** One call of `arrive`. */
export interface Arrival {
  readonly callMs: number;
  /** Infinity if it never returned. */
  returnMs: number;
  end:
    | { readonly what: "passed"; readonly generation: number; readonly index: number }
    | { readonly what: "broke"; readonly generation: number }
    /** It gave up first, or this is unknown; it may still have been counted. */
    | { readonly what: "unknown" };
}

interface Generation {
  readonly number: number;
  readonly passed: Arrival[];
  readonly indexes: number[];
  broke: boolean;
}

/** @returns descriptions of impossible results, and the number of generations that passed */
export function judgeBarrier(
  arrivals: readonly Arrival[],
  parties: number,
): { readonly wrong: readonly string[]; readonly passed: number } {
  const generations = generationsOf(arrivals);
  const wrong: string[] = [];
  let earliestMs = Number.NEGATIVE_INFINITY;
  for (const { number, passed, indexes, broke } of generations) {
    if (passed.length === 0) continue;
    const name = `generation ${number}`;
    const isOdd = new Set(indexes).size < indexes.length || indexes.some((index) => index < 0 || index >= parties);
    if (isOdd) wrong.push(`${name} let its parties pass as ${indexes.join(", ")}`);
    if (broke) wrong.push(`${name} broke, but let ${passed.length} pass`);
    const lastCallMs = Math.max(...passed.map(({ callMs }) => callMs));
    const firstReturnMs = Math.min(...passed.map(({ returnMs }) => returnMs));
    // Parties without an outcome must at least have called.
    const silent = arrivals
      .filter(({ end, callMs }) => end.what === "unknown" && callMs <= firstReturnMs)
      .map(({ callMs }) => callMs)
      .sort((a, b) => a - b);
    const missing = parties - passed.length;
    if (silent.length < missing) {
      wrong.push(`${name} let ${passed.length} of ${parties} pass, but only ${silent.length} others may have arrived`);
      continue;
    }
    const thereMs = Math.max(lastCallMs, missing > 0 ? (silent[missing - 1] ?? lastCallMs) : lastCallMs);
    earliestMs = Math.max(earliestMs, thereMs);
    if (earliestMs > firstReturnMs)
      wrong.push(
        `${name} let a party pass at ${firstReturnMs.toFixed(1)} ms, but could not pass before ${earliestMs.toFixed(1)} ms`,
      );
  }
  return { wrong, passed: generations.filter(({ passed }) => passed.length > 0).length };
}

/** The generations, by number. */
function generationsOf(arrivals: readonly Arrival[]): Generation[] {
  const found = new Map<number, Generation>();
  for (const arrival of arrivals) {
    const { end } = arrival;
    if (end.what === "unknown") continue;
    const known = found.get(end.generation) ?? { number: end.generation, passed: [], indexes: [], broke: false };
    found.set(end.generation, known);
    if (end.what === "broke") known.broke = true;
    else {
      known.passed.push(arrival);
      known.indexes.push(end.index);
    }
  }
  return [...found.values()].sort((a, b) => a.number - b.number);
}
