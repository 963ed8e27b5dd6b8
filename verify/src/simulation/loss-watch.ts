/**
 * S4: an ended lease reports its loss in time, and never becomes valid again. Also the parts of S1 and F3 that a
 * single lease shows.
 */

import { historyName } from "./draft.js";
import { type SimulatedProcess, TIMER_LATE_MS } from "./process.js";
import type { Recorder } from "./recorder.js";
import type { View } from "./view.js";

/** The tolerance for timers, which count whole milliseconds of a clock that may be slow. */
const SLACK_MS = TIMER_LATE_MS + 1.1;
/** If the clocks of a process have diverged, a lease checks its end at this interval of its monotonic clock. */
const LOOK_MS = 1_000;

/** Watches for losses. */
export class LossWatch {
  readonly #now: () => number;
  readonly #violated: (property: string, text: string) => void;
  readonly #recorder: Recorder;
  readonly #isFair: boolean;
  readonly #oldProcess: string | undefined;
  /**
   * Compares the validity that a lease reports, an upper bound in true ms, with the server; undefined if the server is
   * not read.
   */
  compare: ((view: View, leftMs: number) => void) | undefined;

  /**
   * @param isFair      whether there are no faults between live processes and the server
   * @param oldProcess  the index of the process of protocol 0, if there is one
   */
  constructor(
    now: () => number,
    violated: (property: string, text: string) => void,
    recorder: Recorder,
    isFair: boolean,
    oldProcess?: number,
  ) {
    this.#now = now;
    this.#violated = violated;
    this.#recorder = recorder;
    this.#isFair = isFair;
    this.#oldProcess = oldProcess === undefined ? undefined : `p${oldProcess}`;
  }

  /** The validity that the lease reports, as an upper bound in true ms; checked against all known facts. */
  ask(view: View): number {
    const { lease, process } = view;
    const wasLost = lease.signal.aborted;
    const leftMs = lease.validForMs();
    if (view.isOver) return leftMs;
    const nowMs = this.#now();
    this.#sampled(view, leftMs);
    if (leftMs > 0) {
      if (view.wasFalse || wasLost)
        this.#violated("S4", `${process.name}: a lease of ${view.lockName} came back to life`);
      if (view.own.token !== view.token)
        this.#violated("F3", `${process.name}: a lease of ${view.lockName} changed its token`);
      this.compare?.(view, process.longestTrueMs(leftMs));
      view.lossDueMs = nowMs + process.longestTrueMs(leftMs) + SLACK_MS;
    } else {
      if (!lease.signal.aborted)
        this.#violated("S4", `${process.name}: a lease of ${view.lockName} ended without a report`);
      if (!wasLost && nowMs > this.#toldBy(view) && this.#runsFreely(process)) {
        this.#violated(
          "S4",
          `${process.name}: the loss of ${view.lockName} was reported after ${this.#toldBy(view).toFixed(1)}`,
        );
      }
      if (!view.wasFalse && lease.signal.aborted) this.#checkReason(view);
      view.wasFalse = true;
      view.lossDueMs = Infinity;
    }
    return leftMs;
  }

  /** Whether the lease should have reported its loss by now, and was not asked since. */
  isDue(view: View): boolean {
    const nowMs = this.#now();
    return nowMs > view.lossDueMs && nowMs > this.#toldBy(view) && !view.isOver && this.#runsFreely(view.process);
  }

  #sampled({ process, lockName, operation, own }: View, leftMs: number): void {
    const isHeld = leftMs > 0;
    this.#recorder.add({
      type: "held",
      atMs: this.#now(),
      process: historyName(process),
      lockName,
      leaseId: operation.id,
      isHeld,
      token: operation.token === null ? null : own.token,
      validUntilMs: isHeld ? this.#now() + process.longestTrueMs(leftMs) : null,
    });
  }

  /** The latest time at which its holder must know the loss, if its process runs. */
  #toldBy({ process, lossDueMs, attempt, grantedMs }: View): number {
    const beganMs = attempt?.callMs ?? grantedMs;
    if (process.partedAtMs < beganMs) return lossDueMs;
    return Math.max(lossDueMs, process.resumedAtMs) + process.longestTrueMs(LOOK_MS) + SLACK_MS;
  }

  /** The server must not forget a current lease, and without network faults a renewed lease does not end. */
  #checkReason({ lease, process, lockName, mayBeTaken, isRenewed }: View): void {
    const { reason } = lease.signal.reason as { readonly reason?: string };
    if (mayBeTaken) return;
    // After a suspension of the host, protocol 0 reported an expired lease as lost when the next grant arrived.
    if (process.name === this.#oldProcess && process.partedAtMs !== -Infinity && reason === "server-lost") return;
    if (reason === "server-lost" || reason === "force-released")
      this.#violated("S1", `${process.name}: the lease of ${lockName} is lost as ${reason}, although nobody took it`);
    if (this.#isFair && isRenewed && reason === "expired")
      this.#violated("S1", `${process.name}: the lease of ${lockName} is renewed, but ended without a cause`);
  }

  #runsFreely(process: SimulatedProcess): boolean {
    return !process.isDead && !process.isFrozen && this.#now() - process.resumedAtMs > SLACK_MS;
  }
}

/** Whether the lease may still change its state. */
export function isAlive(view: View): boolean {
  return !view.isOver && !view.wasFalse && !view.process.isDead;
}
