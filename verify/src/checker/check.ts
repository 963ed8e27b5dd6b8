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
 * Such operations are tried last, and an order that used fewer of them stands for those that used more (seen.ts): else
 * each would double the search. And models are nondeterministic throughout: the search carries the set of states that
 * the order can have led to.
 */
import { Bitset } from "./bitset.js";
import type { Model, Timed } from "./model.js";
import { processorMs } from "./processor-ms.js";
import { Seen } from "./seen.js";
import { type Mark, type Open, Timeline } from "./timeline.js";

/** How far a search may go, and what it keeps. */
export interface CheckOptions {
  /**
   * Of processor time, so that a busy machine decides as much as a quiet one. More lets wider histories be decided; 0
   * gives up immediately.
   *
   * @default Infinity
   */
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
  /** `unknown` if the time was over first. A gate must treat it as a failure. */
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

/** A step that was taken, and how to take it back. */
interface Taken<State> {
  readonly operation: number;
  readonly call: Mark | undefined;
  readonly before: StateSet<State>;
  readonly resume: Place;
}

/** The search as it stands. */
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

  /** Tries what is at the place and moves on; false if there is nothing left to try before the next return. */
  forward(): boolean {
    const { mark, open } = this.#place;
    // A return stands behind every call in the list while any is left, so the search meets it before the end.
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

  /** Puts the operation next in the order, if the model lets it and it leads to something new. */
  #take(operation: number, call: Mark | undefined): boolean {
    const next = stepAll(this.#model, this.#states, (this.#operations[operation] as Timed<Value>).value);
    if (next.states.length === 0 || !this.#seen.add(this.#done, this.#used, next.key)) return false;
    this.#stack.push({ operation, call, before: this.#states, resume: this.#place });
    this.#states = next;
    if (call !== undefined) this.#timeline.lift(call);
    this.#place = { mark: this.#timeline.head.next, open: 0 };
    return true;
  }

  /** Takes the last step back; false if there is none. */
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

/** The longest orders that were found. They help to understand a violation. */
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
