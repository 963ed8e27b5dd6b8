/** The cohorts of one Holdfast, by what their claims have in common. */
import { Cohort } from "./cohort.js";
import type { Engine } from "./engine.js";
import type { ResolvedOptions } from "./options.js";
import type { Steps } from "./steps.js";

/** Up to so many idle ones are kept: to make and remove one for each acquire costs more than the acquire's own work. */
const KEPT = 1_024;

/** See the file header. */
export class Cohorts {
  readonly #engine: Engine;
  #byKey = new Map<string, Cohort>();
  #tidyAt = KEPT;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** The cohort that a caller with these options belongs to. */
  of(steps: Steps, { leaseMs, label }: ResolvedOptions): Cohort {
    // With the lengths, since all three texts may contain anything. The name is what errors of the claim tell.
    const { name, key: lockKey } = steps;
    const key = `${leaseMs} ${label.length} ${name.length} ${label}${name}${lockKey}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= this.#tidyAt) this.#tidy();
    const cohort = new Cohort(this.#engine, leaseMs, label);
    this.#byKey.set(key, cohort);
    return cohort;
  }

  #tidy(): void {
    this.#byKey = new Map([...this.#byKey].filter(([, cohort]) => !cohort.isIdle));
    this.#tidyAt = Math.max(KEPT, this.#byKey.size * 2);
  }
}
