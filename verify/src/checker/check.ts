/**
 * Decides whether a concurrent history is linearizable with respect to a sequential model.
 *
 * The algorithm is the search of J. Wing and C. Gong, "Testing and verifying concurrent objects" (1993): take a call
 * that no return precedes, step the model, and continue; at a return that cannot be passed, backtrack. The cache of
 * G. Lowe, "Testing for linearizability" (2017), prunes sets of operations that led to the same state before.
 * Porcupine (github.com/anishathalye/porcupine) combines the two in the same way.
 *
 * There are two differences. First, an operation with an unknown outcome has no return, and the search is done when
 * all returns are passed. An operation that was left out never took effect, so models need no step for "nothing
 * happened". Such operations are tried last, and an order that used fewer of them replaces those that used more
 * (seen.ts); otherwise each would double the search. Second, models are nondeterministic: the search carries the set
 * of states that the order may have led to.
 */
import { Bitset } from "./bitset.js";
import type { Model, Timed } from "./model.js";
import { processorMs } from "./processor-ms.js";
import { Seen } from "./seen.js";
import { type Mark, type Open, Timeline } from "./timeline.js";

/** Limits of a search, and what it records. */
export interface CheckOptions {
  /**
   * The limit in processor time, so that the result does not depend on other load. A larger limit decides histories
   * with more concurrency; 0 gives up immediately.
   *
   * @default Infinity
   */
  readonly timeoutMs?: number;
  /**
   * Whether to record, for each operation, the longest order that contains it. Takes extra time if the history has a
   * violation.
   *
   * @default false  only the longest order
   */
  readonly keepsPartials?: boolean;
}

/** The result of a search. */
export interface CheckResult<Value> {
  /** `unknown` if the time limit was reached. A gate must treat it as a failure. */
  readonly verdict: "ok" | "violation" | "unknown";
  /** Orders that the model accepts, longest first. If the verdict is `ok`, the first contains all operations. */
  readonly partials: readonly (readonly Timed<Value>[])[];
  /** The operation whose return the longest order could not pass; undefined unless there is a violation. */
  readonly stuckAt: Timed<Value> | undefined;
  /** The number of visited pairs of operations and state. */
  readonly visited: number;
}

/** Steps between two checks of the time. */
const STEPS_PER_LOOK = 512;

/** Whether `operations` on one object can have happened sequentially, each between its call and its return. */
export function check<State, Value>(
  model: Model<State, Value>,
  operations: readonly Timed<Value>[],
  options: CheckOptions = {},
): CheckResult<Value> {
  const { timeoutMs = Number.POSITIVE_INFINITY, keepsPartials = false } = options;
  const deadlineMs = processorMs() + timeoutMs;
  const search = new Search(model, operations, keepsPartials);
  for (let step = 0; !search.isDone; step += 1) {
    if (step % STEPS_PER_LOOK === 0 && processorMs() >= deadlineMs) return search.result("unknown");
    if (!search.forward() && !search.back()) return search.result("violation");
  }
  return search.result("ok");
}

/** A position in the search: the next call to try or, after the last call, the next operation with an unknown outcome. */
interface Place {
  mark: Mark | null;
  open: number;
}

/** A step, and the data to undo it. */
interface Taken<State> {
  readonly operation: number;
  readonly call: Mark | undefined;
  readonly before: StateSet<State>;
  readonly resume: Place;
}

/** The current state of the search. */
class Search<State, Value> {
  readonly #model: Model<State, Value>;
  readonly #operations: readonly Timed<Value>[];
  readonly #timeline: Timeline;
  readonly #done: Bitset;
  readonly #used: Bitset;
  readonly #seen = new Seen();
  readonly #orders: Orders<Value>;
  readonly #stack: Taken<State>[] = [];
  #states: StateSet<State>;
  #place: Place;

  constructor(model: Model<State, Value>, operations: readonly Timed<Value>[], keepsPartials: boolean) {
    this.#model = model;
    this.#operations = operations;
    this.#timeline = new Timeline(operations);
    this.#done = new Bitset(operations.length);
    this.#used = new Bitset(this.#timeline.open.length);
    this.#orders = new Orders(operations, keepsPartials);
    this.#states = stateSet(model, [model.initial]);
    this.#place = { mark: this.#timeline.head.next, open: 0 };
  }

  get isDone(): boolean {
    return this.#timeline.returns === 0;
  }

  /** Tries the current place and advances; returns false if there is nothing left to try before the next return. */
  forward(): boolean {
    const { mark, open } = this.#place;
    // Every call in the list has a return after it, so the search meets a return before the end.
    if (mark === null) throw new Error("The timeline has a return that cannot be reached");
    if (mark.isCall) {
      this.#place.mark = mark.next;
      this.#done.flip(mark.operation);
      if (!this.#take(mark.operation, mark)) this.#done.flip(mark.operation);
      return true;
    }
    const next = this.#timeline.open[open];
    if (next === undefined || next.atMs > mark.atMs) return false;
    this.#place.open = open + 1;
    this.#tryOpen(next, open);
    return true;
  }

  #tryOpen({ operation }: Open, index: number): void {
    if (this.#used.has(index)) return;
    this.#used.flip(index);
    if (!this.#take(operation, undefined)) this.#used.flip(index);
  }

  /** Appends the operation to the order if the model accepts it and the result is new. */
  #take(operation: number, call: Mark | undefined): boolean {
    const next = stepAll(this.#model, this.#states, (this.#operations[operation] as Timed<Value>).value);
    if (next.states.length === 0 || !this.#seen.add(this.#done, this.#used, next.key)) return false;
    this.#stack.push({ operation, call, before: this.#states, resume: this.#place });
    this.#states = next;
    if (call !== undefined) this.#timeline.lift(call);
    this.#place = { mark: this.#timeline.head.next, open: 0 };
    return true;
  }

  /** Undoes the last step; returns false if there is none. */
  back(): boolean {
    this.#orders.keep(this.#stack, this.#place.mark?.operation);
    const last = this.#stack.pop();
    if (last === undefined) return false;
    this.#states = last.before;
    this.#place = last.resume;
    if (last.call === undefined) this.#used.flip(this.#place.open - 1);
    else {
      this.#done.flip(last.operation);
      this.#timeline.unlift(last.call);
    }
    return true;
  }

  result(verdict: CheckResult<Value>["verdict"]): CheckResult<Value> {
    if (verdict === "ok") this.#orders.keep(this.#stack, undefined);
    return {
      verdict,
      partials: this.#orders.longestFirst(),
      stuckAt: verdict === "violation" ? this.#orders.stuckAt : undefined,
      visited: this.#seen.size,
    };
  }
}

/** The distinct states that an order may have led to, and a key that identifies the set. */
interface StateSet<State> {
  readonly states: readonly State[];
  readonly key: string;
}

function stateSet<State>(model: Model<State, never>, states: readonly State[]): StateSet<State> {
  if (states.length === 1) return { states, key: model.key(states[0] as State) };
  const byKey = new Map(states.map((state) => [model.key(state), state]));
  // The first character distinguishes the key of a set from that of a single state.
  return { states: [...byKey.values()], key: `\u0000${JSON.stringify([...byKey.keys()].sort())}` };
}

function stepAll<State, Value>(model: Model<State, Value>, from: StateSet<State>, value: Value): StateSet<State> {
  return stateSet(
    model,
    from.states.flatMap((state) => model.step(state, value)),
  );
}

/** The longest orders found. They help to understand a violation. */
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

  keep(stack: readonly { readonly operation: number }[], stuckAt: number | undefined): void {
    let order: readonly number[] | undefined;
    const copy = (): readonly number[] => {
      order ??= stack.map(({ operation }) => operation);
      return order;
    };
    const isFirstOrWhole = this.#stuckAt === undefined || stuckAt === undefined;
    if (isFirstOrWhole || stack.length > this.#longest.length) {
      this.#longest = copy();
      this.#stuckAt = stuckAt;
    }
    if (this.#byOperation === undefined) return;
    for (const { operation } of stack)
      if (stack.length > (this.#byOperation[operation]?.length ?? 0)) this.#byOperation[operation] = copy();
  }

  longestFirst(): (readonly Timed<Value>[])[] {
    // Many operations share the same longest order; operations that are in no order are skipped.
    const orders = new Set([this.#longest]);
    this.#byOperation?.forEach((order) => {
      orders.add(order);
    });
    return [...orders]
      .sort((a, b) => b.length - a.length)
      .map((order) => order.map((operation) => this.#operations[operation] as Timed<Value>));
  }
}
