/**
 * Records a run in the history of its name: that it started and how it ended, or that it was skipped and why.
 *
 * The events are written while the command runs. A failed write never fails the run, and at its end the
 * run waits only briefly for the writes.
 */

import type { Holdfast } from "holdfast";
import type { HistoryEvent } from "holdfast/admin";
import { sleep } from "../../frame/durations.js";

const LONGEST_WRITE_MS = 500;

/** Records one run in the history. */
export class Chronicle {
  readonly #holdfast: Holdfast;
  readonly #about: Pick<HistoryEvent, "kind" | "name" | "label">;
  #last: Promise<void> = Promise.resolve();

  constructor(holdfast: Holdfast, about: Pick<HistoryEvent, "kind" | "name" | "label">) {
    this.#holdfast = holdfast;
    this.#about = about;
  }

  /** Adds an event after all earlier ones. */
  add(event: Omit<HistoryEvent, "kind" | "name" | "label">): void {
    const happenedAtMs = performance.now();
    this.#last = this.#last.then(() => this.#write(event, happenedAtMs)).catch(() => {});
  }

  /** Resolves when all events are written, or after `LONGEST_WRITE_MS`. */
  async settled(): Promise<void> {
    await Promise.race([this.#last, sleep(LONGEST_WRITE_MS)]);
  }

  async #write(event: Omit<HistoryEvent, "kind" | "name" | "label">, happenedAtMs: number): Promise<void> {
    // Import the module only now, so that it does not delay the start of the command.
    const { appendHistory } = await import("holdfast/admin");
    const agoMs = Math.max(0, Math.round(performance.now() - happenedAtMs));
    await appendHistory(this.#holdfast, { ...this.#about, ...event, agoMs });
  }
}
