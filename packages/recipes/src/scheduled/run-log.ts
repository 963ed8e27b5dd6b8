/**
 * Reports the runs of one job: counts them, publishes them on `runChannels`, and, if requested, writes them to the
 * history.
 *
 * Invariant: no error here reaches a run, and no run waits long for the history.
 */

import { type Holdfast, LeaseLostError, PausedError } from "holdfast";
import { anyInternalsOf, checkKeep, type HistoryEvent, Outbox, placeOf, type Runtime } from "holdfast/internal";
import { wordsOf } from "../failure.js";
import type { Refusal, RefusalReason } from "../refusal.js";
import {
  type RunEndedEvent,
  type RunEnding,
  type RunEvent,
  type RunSkippedEvent,
  type RunStartedEvent,
  runChannels,
} from "../run-events.js";
import { settledWithin } from "./settled-within.js";

/** Counts of runs and refusals in this process since the job was created. */
export interface RunCounts {
  /** The number of runs that began here. */
  readonly started: number;
  /** The number of those runs that ended, by how they ended. */
  readonly ended: Readonly<Record<RunEnding, number>>;
  /** The number of calls that did not run here, by reason. */
  readonly skipped: Readonly<Record<RefusalReason, number>>;
}

/** The mutable form of `RunCounts`. */
interface Counting {
  started: number;
  readonly ended: Record<RunEnding, number>;
  readonly skipped: Record<RefusalReason, number>;
}

/** Identity of a run that has begun. */
export interface BegunRun {
  /** Time of the call, in ISO 8601; for a coordinator, the scheduler's key. */
  readonly tick: string;
  /** Owner id of the run's claim. */
  readonly owner: string;
  /** Fencing token of the run's lease. */
  readonly token: number;
}

/**
 * Longest wait for the history, in milliseconds. It is short because Redis may be down. If the wait ends first, the
 * history shows a run that has not ended.
 */
const LONGEST_NOTE_MS = 500;
const RETRY_EVERY_MS = 1_000;

/** Counts, publishes and records the runs of one job. */
export class RunLog {
  /** The counts so far. Updated in place. */
  readonly counts: Counting = {
    started: 0,
    ended: { succeeded: 0, failed: 0, lost: 0, unreported: 0 },
    skipped: { held: 0, paused: 0, "already-done": 0, full: 0, grace: 0, unavailable: 0 },
  };
  readonly #about: Pick<RunEvent, "kind" | "lockName" | "clientId">;
  readonly #common: Pick<HistoryEvent, "kind" | "name" | "label">;
  readonly #outbox: Outbox | undefined;
  readonly #runtime: Runtime;

  /** @throws TypeError  `holdfast` is not from `createHoldfast` @throws ClosedError */
  constructor(
    holdfast: Holdfast,
    { kind, name, label, history }: { kind: string; name: string; label: string; history: boolean },
  ) {
    const { session } = anyInternalsOf(holdfast);
    this.#runtime = session.runtime;
    this.#about = { kind, lockName: name, clientId: session.clientId };
    this.#common = { kind, name, ...(label === "" ? {} : { label }) };
    this.#outbox = history ? new Outbox(placeOf(holdfast), RETRY_EVERY_MS, checkKeep({})) : undefined;
  }

  /** Reports a call that did not run. */
  skipped(tick: string, refusal: Refusal): void {
    const { reason, error } = refusal;
    this.counts.skipped[reason] += 1;
    if (runChannels.skipped.hasSubscribers) {
      const event: RunSkippedEvent = { ...this.#about, tick, reason, refusal };
      runChannels.skipped.publish(event);
    }
    // For each run, all instances but one would write this and push more useful entries out of the history.
    if (reason === "already-done") return;
    const errorName = reason === "unavailable" ? error?.name : undefined;
    void this.#record({ what: "skipped", reason, tick: cut(tick), errorName, ...inTheWay(refusal) });
  }

  /** Reports a run that has begun. */
  started(run: BegunRun): void {
    this.counts.started += 1;
    if (runChannels.started.hasSubscribers) {
      const event: RunStartedEvent = { ...this.#about, ...run };
      runChannels.started.publish(event);
    }
    void this.#record({ what: "granted", ...this.#historyOf(run) });
  }

  /**
   * Reports a run that has ended here. Resolves when the history has recorded it, or after LONGEST_NOTE_MS.
   *
   * @param ranMs  duration of the run in milliseconds
   * @param error  the thrown value or the loss, if any
   */
  async ended(run: BegunRun, outcome: RunEnding, ranMs: number, error?: unknown): Promise<void> {
    this.counts.ended[outcome] += 1;
    if (runChannels.ended.hasSubscribers) {
      const event: RunEndedEvent = {
        ...this.#about,
        ...run,
        outcome,
        ranMs,
        ...(error === undefined ? {} : { error }),
      };
      runChannels.ended.publish(event);
    }
    const what = outcome === "lost" ? "lost" : "released";
    const written = this.#record({ what, heldMs: Math.round(ranMs), ...why(outcome, error), ...this.#historyOf(run) });
    await settledWithin(this.#runtime, written, LONGEST_NOTE_MS);
  }

  #historyOf({ tick, owner, token }: BegunRun): Pick<HistoryEvent, "tick" | "owner" | "token"> {
    return { tick: cut(tick), owner, token };
  }

  async #record(event: Omit<HistoryEvent, "kind" | "name">): Promise<void> {
    if (this.#outbox === undefined) return;
    const id = event.token === undefined ? { id: this.#runtime.newClientId() } : {};
    this.#outbox.add({ ...this.#common, ...event, ...id });
    await this.#outbox.flush();
  }
}

/** Returns who held or paused the lock, as fields of a history event. */
function inTheWay({ holder, error }: Refusal): Pick<HistoryEvent, "by" | "label"> {
  if (error instanceof PausedError) return { by: error.by, label: error.label };
  if (holder === undefined) return {};
  return { by: cut(holder.host === undefined ? holder.owner : `${holder.host}/${holder.pid}`) };
}

/** Returns why a run did not succeed, as fields of a history event. */
function why(outcome: RunEnding, error: unknown): Pick<HistoryEvent, "errorName" | "reason"> {
  if (outcome === "failed") return { errorName: cut(nameOf(error)), reason: cut(`failed: ${nameOf(error)}`) };
  return outcome === "lost" && error instanceof LeaseLostError ? { reason: error.reason } : {};
}

/** Truncates a string to the 1,000 bytes that the history accepts. */
function cut(text: string): string {
  return Buffer.from(text).subarray(0, 1_000).toString();
}

/** Returns the name of an error, or the type of any other thrown value. */
function nameOf(error: unknown): string {
  return wordsOf(error).name;
}
