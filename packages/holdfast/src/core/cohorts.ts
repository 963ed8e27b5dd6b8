/** The cohorts of one Holdfast, by what their claims have in common. */
import { Cohort } from "./cohort.js";
import type { ResolvedOptions } from "./options.js";
import type { LockProtocol } from "./protocol.js";
import type { Session } from "./session.js";

/** Up to so many locks are kept of which all are idle: to make and remove one for each acquire costs more than the acquire's own work. */
const KEPT = 1_024;
/** From so many of one lock on the idle ones go as another one comes: a label may be new with each acquire. */
const KEPT_OF_ONE = 4;

/** See the file header. */
export class Cohorts {
  readonly #session: Session;
  /** By the key of the lock; of one lock there is one, unless callers want leases of several lengths or labels. */
  #byKey = new Map<string, readonly Cohort[]>();
  #tidyAt = KEPT;

  constructor(session: Session) {
    this.#session = session;
  }

  /** The cohort that a caller with these options belongs to. */
  of(protocol: LockProtocol, options: ResolvedOptions): Cohort {
    const { name, key } = protocol;
    const known = this.#byKey.get(key);
    const found = known?.find((one) => one.suits(name, options));
    if (found !== undefined) return found;
    const cohort = new Cohort(this.#session, name, options);
    if (known === undefined && this.#byKey.size >= this.#tidyAt) this.#tidy();
    const others = known === undefined || known.length < KEPT_OF_ONE ? known : busyOf(known);
    this.#byKey.set(key, [...(others ?? []), cohort]);
    return cohort;
  }

  #tidy(): void {
    const busy = Array.from(this.#byKey, ([key, all]) => [key, busyOf(all)] as const);
    this.#byKey = new Map(busy.filter(([, all]) => all.length > 0));
    this.#tidyAt = Math.max(KEPT, this.#byKey.size * 2);
  }
}

function busyOf(cohorts: readonly Cohort[]): readonly Cohort[] {
  return cohorts.filter(({ isIdle }) => !isIdle);
}
