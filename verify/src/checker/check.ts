/**
 * Decides whether a concurrent history is linearizable to a sequential model.
 *
 * The search of J. Wing and C. Gong, "Testing and verifying concurrent objects" (1993): take a call that no return
 * precedes, let the model step, go on; at a return that cannot be passed, go back. With the cache of G. Lowe, "Testing
 * for linearizability" (2017), which cuts off a set of operations that led to the same state before. The composition
 * of both is that of Porcupine (github.com/anishathalye/porcupine).
 *
 * It departs from them in two points. An operation of unknown outcome has no return, and the search is done when all
 * returns are passed: an operation that was left out never took effect, so models need no step for "nothing happened".
 * And models are nondeterministic throughout: the search carries the set of states that the order can have led to.
 */
import { Bitset } from "./bitset.js";
import type { Model, Timed } from "./model.js";
import { Seen } from "./seen.js";
import { type Mark, Timeline } from "./timeline.js";

/** How far a search may go, and what it keeps. */
export interface CheckOptions {
  /** More lets wider histories be decided; 0 gives up at once. @default Infinity */
  readonly timeoutMs?: number;
  /**
   * Keeps for each operation the longest order it was part of, which costs time on a history that violates.
   *
   * @default false  only the longest of all
   */
  readonly keepsPartials?: boolean;
}

/** What came of a search. */
export interface CheckResult<Value> {
  /** `unknown` when the time was over first; to whoever gates on it, it is a failure. */
  readonly verdict: "ok" | "violation" | "unknown";
  /** Orders that the model accepts, longest first: the whole one if the verdict is `ok`, else how far it got. */
  readonly partials: readonly (readonly Timed<Value>[])[];
  /** The operation whose return the longest order could not pass; undefined unless there is a violation. */
  readonly stuckAt: Timed<Value> | undefined;
  /** Pairs of operations and state that were looked at. */
  readonly visited: number;
}

/** Steps between two looks at the clock. */
const STEPS_PER_LOOK = 512;

/** Whether `operations`, all on one thing, can have happened one after another, each between its call and its return. */
export function check<State, Value>(
  model: Model<State, Value>,
  operations: readonly Timed<Value>[],
  options: CheckOptions = {},
): CheckResult<Value> {
  const { timeoutMs = Number.POSITIVE_INFINITY, keepsPartials = false } = options;
  const deadlineMs = performance.now() + timeoutMs;
  const timeline = new Timeline(operations);
  const taken = new Bitset(operations.length);
  const seen = new Seen();
  const orders = new Orders(operations, keepsPartials);
  const stack: { readonly call: Mark; readonly before: StateSet<State> }[] = [];
  let states: StateSet<State> = stateSet(model, [model.initial]);
  let mark = timeline.head.next;

  const result = (verdict: CheckResult<Value>["verdict"]): CheckResult<Value> => ({
    verdict,
    partials: orders.longestFirst(),
    stuckAt: verdict === "violation" ? orders.stuckAt : undefined,
    visited: seen.size,
  });

  for (let step = 0; timeline.returns > 0; step += 1) {
    if (step % STEPS_PER_LOOK === 0 && performance.now() >= deadlineMs) return result("unknown");
    // A return stands behind every call in the list while any is left, so the search meets it before the end.
    if (mark === null) throw new Error("The timeline has a return that cannot be reached");

    if (mark.isCall) {
      const next = stepAll(model, states, (operations[mark.operation] as Timed<Value>).value);
      if (next.states.length > 0) {
        taken.flip(mark.operation);
        if (seen.add(taken, next.key)) {
          stack.push({ call: mark, before: states });
          states = next;
          timeline.lift(mark);
          mark = timeline.head.next;
          continue;
        }
        taken.flip(mark.operation);
      }
      mark = mark.next;
      continue;
    }

    orders.keep(stack, mark.operation);
    const last = stack.pop();
    if (last === undefined) return result("violation");
    states = last.before;
    taken.flip(last.call.operation);
    timeline.unlift(last.call);
    mark = last.call.next;
  }
  orders.keep(stack, undefined);
  return result("ok");
}

/** The states that an order can have led to, each once, and a text that tells such sets apart. */
interface StateSet<State> {
  readonly states: readonly State[];
  readonly key: string;
}

function stateSet<State>(model: Model<State, never>, states: readonly State[]): StateSet<State> {
  if (states.length === 1) return { states, key: model.key(states[0] as State) };
  const byKey = new Map(states.map((state) => [model.key(state), state]));
  // The first character keeps the text of a set from being that of a single state.
  return { states: [...byKey.values()], key: `\u0000${JSON.stringify([...byKey.keys()].sort())}` };
}

function stepAll<State, Value>(model: Model<State, Value>, from: StateSet<State>, value: Value): StateSet<State> {
  return stateSet(
    model,
    from.states.flatMap((state) => model.step(state, value)),
  );
}

/** The longest orders that were found, for whoever has to understand a violation. */
class Orders<Value> {
  readonly #operations: readonly Timed<Value>[];
  readonly #byOperation: (readonly number[])[] | undefined;
  #longest: readonly number[] = [];
  #stuckAt: number | undefined;

  constructor(operations: readonly Timed<Value>[], keepsPartials: boolean) {
    this.#operations = operations;
    this.#byOperation = keepsPartials ? [] : undefined;
  }

  get stuckAt(): Timed<Value> | undefined {
    return this.#stuckAt === undefined ? undefined : this.#operations[this.#stuckAt];
  }

  keep(stack: readonly { readonly call: Mark }[], stuckAt: number | undefined): void {
    let order: readonly number[] | undefined;
    const copy = (): readonly number[] => {
      order ??= stack.map(({ call }) => call.operation);
      return order;
    };
    const isFirstOrWhole = this.#stuckAt === undefined || stuckAt === undefined;
    if (isFirstOrWhole || stack.length > this.#longest.length) {
      this.#longest = copy();
      this.#stuckAt = stuckAt;
    }
    if (this.#byOperation === undefined) return;
    for (const { call } of stack)
      if (stack.length > (this.#byOperation[call.operation]?.length ?? 0)) this.#byOperation[call.operation] = copy();
  }

  longestFirst(): (readonly Timed<Value>[])[] {
    // One order is usually the longest of many operations; a list with holes skips those that were in none.
    const orders = new Set([this.#longest]);
    this.#byOperation?.forEach((order) => {
      orders.add(order);
    });
    return [...orders]
      .sort((a, b) => b.length - a.length)
      .map((order) => order.map((operation) => this.#operations[operation] as Timed<Value>));
  }
}
