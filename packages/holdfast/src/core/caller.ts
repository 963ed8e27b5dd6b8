/** One call of acquire, in a cohort. */

import { Deadline, type DeadlineEnd } from "./deadline.js";
import type { Hold } from "./hold.js";
import type { ResolvedOptions } from "./options.js";
import type { LockProtocol } from "./protocol.js";
import type { Runtime } from "./runtime.js";
import { tellingEnds } from "./telling.js";
import type { Moment } from "./validity.js";
import type { TimedOut } from "./wait-ends.js";

/** Where no claim can be made any more. */
export const NOBODY = { owner: "" };

/** How to tell a caller; one of them is called, once. */
export interface CallerEnds {
  readonly held: (hold: Hold) => void;
  readonly timedOut: (end: TimedOut) => void;
  readonly failed: (error: unknown) => void;
}

/** See the file header. */
export class Caller {
  readonly protocol: LockProtocol;
  readonly options: ResolvedOptions;
  readonly ends: CallerEnds;
  readonly deadline: Deadline;
  /** The one that was on its way when it called. */
  claim: { readonly owner: string } = NOBODY;
  #hasLeft = false;

  constructor(
    runtime: Runtime,
    protocol: LockProtocol,
    options: ResolvedOptions,
    ends: CallerEnds,
    onEnd: (end: DeadlineEnd) => void,
  ) {
    this.protocol = protocol;
    this.options = options;
    this.deadline = new Deadline(runtime, options, onEnd);
    const { startedAt } = this.deadline;
    this.ends = tellingEnds(ends, { protocol, options, runtime, claim: () => this.claim, startedAt: () => startedAt });
  }

  /** It waits no longer: it was served, or has given up, or does so in this turn because its signal has just aborted. */
  get hasLeft(): boolean {
    return this.#hasLeft || this.options.signal?.aborted === true;
  }

  /** Whether it had called by that moment, as both clocks say: one of them may have stood still, or been set. */
  hadCalledBy({ monotonicMs, wallMs }: Moment): boolean {
    const { startedAt } = this.deadline;
    return startedAt.monotonicMs <= monotonicMs && startedAt.wallMs <= wallMs;
  }

  /** Waits no longer. */
  leave(): void {
    this.#hasLeft = true;
    this.deadline.stop();
  }
}
