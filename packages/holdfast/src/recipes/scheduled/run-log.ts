/**
 * What is told of the runs of one job: counted, published on the channels of runs, and written to the history if that is wanted.
 *
 * Invariant: nothing that goes wrong here reaches a run, and nobody waits for it for long.
 */

import { checkKeep, type HistoryEvent } from "../../admin/history.js";
import { Outbox } from "../../admin/outbox.js";
import { placeOf } from "../../admin/place.js";
import { type Holdfast, PausedError } from "../../index.js";
import { anyInternalsOf, type Runtime } from "../../internal.js";
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

/** How often what happened, in this process, since the job was made. */
export interface RunCounts {
  /** Runs that were begun here. */
  readonly started: number;
  /** Of these, those that have ended, by how. */
  readonly ended: Readonly<Record<RunEnding, number>>;
  /** Calls that did not run here, by why. */
  readonly skipped: Readonly<Record<RefusalReason, number>>;
}

/** The same, while it counts. */
interface Counting {
  started: number;
  readonly ended: Record<RunEnding, number>;
  readonly skipped: Record<RefusalReason, number>;
}

/** What is known of a run that has begun. */
export interface BegunRun {
  readonly tick: string;
  readonly owner: string;
  readonly token: number;
}

/** Redis may be what failed: whoever looks then finds a run without an end. */
const LONGEST_NOTE_MS = 500;
const RETRY_EVERY_MS = 1_000;

/** See the file header. */
export class RunLog {
  readonly counts: Counting = {
    started: 0,
    ended: { succeeded: 0, failed: 0, lost: 0, untold: 0 },
    skipped: { held: 0, paused: 0, "already-done": 0, full: 0, grace: 0, unavailable: 0 },
  };
  readonly #about: Pick<RunEvent, "kind" | "lockName" | "clientId">;
  readonly #told: Pick<HistoryEvent, "kind" | "name" | "label">;
  readonly #outbox: Outbox | undefined;
  readonly #runtime: Runtime;

  /** @throws TypeError  it is not what `createHoldfast` has returned. @throws ClosedError */
  constructor(
    holdfast: Holdfast,
    { kind, name, label, history }: { kind: string; name: string; label: string; history: boolean },
  ) {
    const { session } = anyInternalsOf(holdfast);
    this.#runtime = session.runtime;
    this.#about = { kind, lockName: name, clientId: session.clientId };
    this.#told = { kind, name, ...(label === "" ? {} : { label }) };
    this.#outbox = history ? new Outbox(placeOf(holdfast), RETRY_EVERY_MS, checkKeep({})) : undefined;
  }

  /** It was not run. */
  skipped(tick: string, refusal: Refusal): void {
    const { reason, error } = refusal;
    this.counts.skipped[reason] += 1;
    if (runChannels.skipped.hasSubscribers) {
      const event: RunSkippedEvent = { ...this.#about, tick, reason, refusal };
      runChannels.skipped.publish(event);
    }
    // Of each run all but one instance would say so, and push out what is worth reading.
    if (reason === "already-done") return;
    const errorName = reason === "unavailable" ? error?.name : undefined;
    void this.#tell({ what: "skipped", reason, tick: cut(tick), errorName, ...inTheWay(refusal) });
  }

  /** It has begun. */
  started(run: BegunRun): void {
    this.counts.started += 1;
    if (runChannels.started.hasSubscribers) {
      const event: RunStartedEvent = { ...this.#about, ...run };
      runChannels.started.publish(event);
    }
    void this.#tell({ what: "granted", ...this.#historyOf(run) });
  }

  /** It has ended here. Resolves when the history has it, or that takes too long. */
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
    const why = outcome === "failed" ? { errorName: cut(nameOf(error)), reason: cut(`failed: ${nameOf(error)}`) } : {};
    const what = outcome === "lost" ? "lost" : "released";
    const written = this.#tell({ what, heldMs: Math.round(ranMs), ...why, ...this.#historyOf(run) });
    await settledWithin(this.#runtime, written, LONGEST_NOTE_MS);
  }

  #historyOf({ tick, owner, token }: BegunRun): Pick<HistoryEvent, "tick" | "owner" | "token"> {
    return { tick: cut(tick), owner, token };
  }

  async #tell(event: Omit<HistoryEvent, "kind" | "name">): Promise<void> {
    if (this.#outbox === undefined) return;
    const id = event.token === undefined ? { id: this.#runtime.newClientId() } : {};
    this.#outbox.add({ ...this.#told, ...event, ...id });
    await this.#outbox.flush();
  }
}

/** Who had it, or has paused it. */
function inTheWay({ holder, error }: Refusal): Pick<HistoryEvent, "by" | "label"> {
  if (error instanceof PausedError) return { by: error.by, label: error.label };
  if (holder === undefined) return {};
  return { by: cut(holder.host === undefined ? holder.owner : `${holder.host}/${holder.pid}`) };
}

/** What the history takes of a text. */
function cut(text: string): string {
  return Buffer.from(text).subarray(0, 1_000).toString();
}

/** What was thrown, in a word. */
function nameOf(error: unknown): string {
  return wordsOf(error).name;
}
