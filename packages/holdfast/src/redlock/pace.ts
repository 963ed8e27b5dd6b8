/**
 * How long to stay away after an attempt that others have foiled. Whoever comes at the same moment splits the votes again,
 * so the delay is random, longer than winning a majority takes, and spread the wider the more often that has happened.
 */
import type { Runtime } from "../core/runtime.js";

/** A message may be lost, and then this is how long a lock is free and nobody comes. */
export const RECHECK_MS = 2_000;

const SHORTEST_WIN_MS = 1;
const LONGEST_WIN_MS = 100;
const SHORTEST_PATIENCE_MS = 20;
const WINS_OF_PATIENCE = 4;
/** How often the spread is doubled at most. */
const DOUBLINGS = 5;
/** The share of the newest attempt in the estimate. */
const NEWEST = 0.25;

/** See the file header. One for each Holdfast: its attempts go to the same servers. */
export class Pace {
  readonly #runtime: Runtime;
  #winMs = 5;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** About how long it takes to win a majority, in ms. */
  get winMs(): number {
    return this.#winMs;
  }

  /** How long one server may be silent before the others are asked without it, in ms. */
  get patienceMs(): number {
    return Math.max(SHORTEST_PATIENCE_MS, WINS_OF_PATIENCE * this.#winMs);
  }

  /** An attempt was decided by answers, after so long. */
  took(durationMs: number): void {
    const boundedMs = Math.min(LONGEST_WIN_MS, Math.max(SHORTEST_WIN_MS, durationMs));
    this.#winMs += (boundedMs - this.#winMs) * NEWEST;
  }

  /** @param foiled  how often in a row others came at the same moment */
  delayMs(foiled: number): number {
    const spreadMs = this.#winMs * 2 ** (1 + Math.min(foiled, DOUBLINGS));
    return this.#winMs + this.#runtime.random() * spreadMs;
  }
}
