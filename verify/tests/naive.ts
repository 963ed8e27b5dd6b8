import type { Model, Timed } from "../src/checker/index.js";

/** Whether any order explains the history, by trying all of them. */
export function naiveCheck<State, Value>(model: Model<State, Value>, operations: readonly Timed<Value>[]): boolean {
  const extend = (states: readonly State[], left: readonly Timed<Value>[]): boolean => {
    if (left.every(({ returnMs }) => returnMs === Number.POSITIVE_INFINITY)) return true;
    return left.some((next) => {
      if (left.some((other) => other !== next && other.returnMs < next.callMs)) return false;
      const after = states.flatMap((state) => model.step(state, next.value));
      if (after.length === 0) return false;
      return extend(
        after,
        left.filter((other) => other !== next),
      );
    });
  };
  return extend([model.initial], operations);
}

/** When the operations of two clients begin and end, grouped by client. */
export type Shape = readonly { readonly client: number; readonly callMs: number; readonly returnMs: number }[];

/**
 * Every way in which two clients with this many operations each can overlap.
 *
 * Histories that differ only in the order of two calls or two returns count as one, because no client could distinguish them.
 */
export function shapes(first: number, second: number): Shape[] {
  const found = new Map<string, Shape>();
  const place = (events: readonly number[]): void => {
    const left = [first * 2, second * 2].map((total, client) => total - events.filter((one) => one === client).length);
    if (left.every((count) => count === 0)) {
      const shape = shapeOf(events);
      const order = shape.flatMap((a) => shape.map((b) => (a.returnMs < b.callMs ? 1 : 0))).join("");
      if (!found.has(order)) found.set(order, shape);
      return;
    }
    left.forEach((count, client) => {
      if (count > 0) place([...events, client]);
    });
  };
  place([]);
  return [...found.values()];
}

function shapeOf(events: readonly number[]): Shape {
  const instants = [0, 1].map((client) => events.flatMap((one, atMs) => (one === client ? [atMs] : [])));
  return instants.flatMap((own, client) =>
    own.flatMap((callMs, index) => (index % 2 === 0 ? [{ client, callMs, returnMs: own[index + 1] as number }] : [])),
  );
}
