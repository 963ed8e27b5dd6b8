/** The callers of one flight, each with its own deadline and its own way to be told. */
import { onAbort } from "../../internal.js";
import type { CacheOutcome, CacheTrace } from "../tracing.js";
import type { Loader } from "./lease.js";

/** What a caller asked for, and how to tell it. */
export interface CallerFacts<Value> {
  readonly load: Loader<Value>;
  /** Until when it waits for other processes, by the monotonic clock. */
  readonly untilMs: number;
  readonly signal: AbortSignal | undefined;
  /** Undefined while nobody listens. */
  readonly trace: CacheTrace | undefined;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

/** One call of `get`. */
export interface CacheCaller<Value> {
  readonly facts: CallerFacts<Value>;
  /** How many loads had begun in its flight when it joined. */
  readonly round: number;
  readonly stopListening: (() => void) | undefined;
}

/** See the file header. Each is told once, and has left then. */
export class Callers<Value> {
  readonly #all = new Set<CacheCaller<Value>>();
  readonly #onLastLeft: (reason: unknown) => void;

  /** @param onLastLeft  called when all have given up, with the reason of the last */
  constructor(onLastLeft: (reason: unknown) => void) {
    this.#onLastLeft = onLastLeft;
  }

  get count(): number {
    return this.#all.size;
  }

  /** Who came first of those who are left. */
  get first(): CacheCaller<Value> | undefined {
    return this.#all.values().next().value;
  }

  /** When the first of them waits no longer; Infinity if nobody does. */
  get soonestMs(): number {
    return this.#deadline(Math.min, Infinity);
  }

  /** When none of them waits any longer; -Infinity if nobody does. */
  get latestMs(): number {
    return this.#deadline(Math.max, -Infinity);
  }

  add(facts: CallerFacts<Value>, round: number): void {
    const caller: CacheCaller<Value> = {
      facts,
      round,
      stopListening: facts.signal && onAbort(facts.signal, () => this.#abort(caller)),
    };
    this.#all.add(caller);
  }

  /** One who waits no longer at that time. */
  overdue(nowMs: number): CacheCaller<Value> | undefined {
    return [...this.#all].find(({ facts }) => facts.untilMs <= nowMs);
  }

  /** Tells one of them, unless it has left. */
  resolve(caller: CacheCaller<Value>, value: Value, outcome: CacheOutcome): void {
    if (this.#leave(caller, outcome)) caller.facts.resolve(value);
  }

  /** Tells one of them, unless it has left. */
  reject(caller: CacheCaller<Value>, error: unknown, outcome: CacheOutcome = "failed"): void {
    if (this.#leave(caller, outcome)) caller.facts.reject(error);
  }

  /** Tells those who had joined before that load began. */
  resolveOlder(round: number, value: Value, outcome: CacheOutcome): void {
    for (const caller of [...this.#all]) {
      if (caller.round < round) this.resolve(caller, value, outcome);
    }
  }

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

  /** One after the other: there may be more of them than a function takes arguments. */
  #deadline(choose: (one: number, other: number) => number, none: number): number {
    let chosen = none;
    for (const { facts } of this.#all) chosen = choose(chosen, facts.untilMs);
    return chosen;
  }
}
