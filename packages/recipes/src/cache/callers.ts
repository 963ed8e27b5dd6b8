/** The callers of one flight, each with its own deadline and its own promise. */
import { onAbort } from "holdfast/internal";
import type { CacheOutcome, CacheTrace } from "../tracing.js";
import type { Loader } from "./lease.js";

/** The arguments of a caller, and the functions that settle its promise. */
export interface CallerFacts<Value> {
  readonly load: Loader<Value>;
  /** When the caller stops waiting for other processes, in milliseconds of the monotonic clock. */
  readonly untilMs: number;
  readonly signal: AbortSignal | undefined;
  /** Undefined if the tracing channel has no subscribers. */
  readonly trace: CacheTrace | undefined;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

/** One call of `get`. */
export interface CacheCaller<Value> {
  readonly facts: CallerFacts<Value>;
  /** The number of loads that had begun in the flight when the caller joined. */
  readonly round: number;
  readonly stopListening: (() => void) | undefined;
}

/** The callers of one flight. Each is settled once, and then removed. */
export class Callers<Value> {
  readonly #all = new Set<CacheCaller<Value>>();
  readonly #onLastLeft: (reason: unknown) => void;

  /** @param onLastLeft  called when the last remaining caller aborts, with the reason of its signal */
  constructor(onLastLeft: (reason: unknown) => void) {
    this.#onLastLeft = onLastLeft;
  }

  /** The number of callers that are still waiting. */
  get count(): number {
    return this.#all.size;
  }

  /** The caller that has waited longest, if any. */
  get first(): CacheCaller<Value> | undefined {
    return this.#all.values().next().value;
  }

  /** The earliest deadline of all callers, in milliseconds of the monotonic clock; Infinity without callers. */
  get soonestMs(): number {
    return this.#deadline(Math.min, Infinity);
  }

  /** The latest deadline of all callers, in milliseconds of the monotonic clock; -Infinity without callers. */
  get latestMs(): number {
    return this.#deadline(Math.max, -Infinity);
  }

  /** Adds a caller. @param round  the number of loads that have begun in the flight */
  add(facts: CallerFacts<Value>, round: number): void {
    const caller: CacheCaller<Value> = {
      facts,
      round,
      stopListening: facts.signal && onAbort(facts.signal, () => this.#abort(caller)),
    };
    this.#all.add(caller);
  }

  /** Returns a caller whose deadline has passed at `nowMs`, if any. */
  overdue(nowMs: number): CacheCaller<Value> | undefined {
    return [...this.#all].find(({ facts }) => facts.untilMs <= nowMs);
  }

  /** Resolves a caller, unless it was already removed. */
  resolve(caller: CacheCaller<Value>, value: Value, outcome: CacheOutcome): void {
    if (this.#leave(caller, outcome)) caller.facts.resolve(value);
  }

  /** Rejects a caller, unless it was already removed. */
  reject(caller: CacheCaller<Value>, error: unknown, outcome: CacheOutcome = "failed"): void {
    if (this.#leave(caller, outcome)) caller.facts.reject(error);
  }

  /** Resolves all callers that joined before load number `round` began. */
  resolveOlder(round: number, value: Value, outcome: CacheOutcome): void {
    for (const caller of [...this.#all]) {
      if (caller.round < round) this.resolve(caller, value, outcome);
    }
  }

  /** Rejects all callers. */
  rejectAll(error: unknown): void {
    for (const caller of [...this.#all]) this.reject(caller, error);
  }

  #abort(caller: CacheCaller<Value>): void {
    const reason = caller.facts.signal?.reason;
    this.reject(caller, reason, "aborted");
    if (this.#all.size === 0) this.#onLastLeft(reason);
  }

  #leave(caller: CacheCaller<Value>, outcome: CacheOutcome): boolean {
    const { trace } = caller.facts;
    caller.stopListening?.();
    if (!this.#all.delete(caller)) return false;
    if (trace !== undefined) trace.outcome = outcome;
    return true;
  }

  /** Loops instead of spreading the deadlines into `Math.min`, because functions take a limited number of arguments. */
  #deadline(choose: (one: number, other: number) => number, none: number): number {
    let chosen = none;
    for (const { facts } of this.#all) chosen = choose(chosen, facts.untilMs);
    return chosen;
  }
}
