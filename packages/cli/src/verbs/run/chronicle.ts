/**
 * What a run adds to the history of its name: that it began and how it ended, or that it was skipped and why.
 *
 * Written beside the command and never in its way: nothing here can fail a run, and nobody waits for it for long.
 */

import type { Holdfast } from "holdfast";
import type { HistoryEvent } from "holdfast/admin";
import { sleep } from "../../frame/durations.js";

const LONGEST_WRITE_MS = 500;

/** See the file header. */
export class Chronicle {
  readonly #holdfast: Holdfast;
  readonly #about: Pick<HistoryEvent, "kind" | "name" | "label">;
  #last: Promise<void> = Promise.resolve();

  constructor(holdfast: Holdfast, about: Pick<HistoryEvent, "kind" | "name" | "label">) {
    this.#holdfast = holdfast;
    this.#about = about;
  }

  /** Adds it after what was added before. */
  add(event: Omit<HistoryEvent, "kind" | "name" | "label">): void {
    const happenedAtMs = performance.now();
    this.#last = this.#last.then(() => this.#write(event, happenedAtMs)).catch(() => {});
  }

  /** Until what was added is written, or it takes too long. */
  async settled(): Promise<void> {
    await Promise.race([this.#last, sleep(LONGEST_WRITE_MS)]);
  }

  async #write(event: Omit<HistoryEvent, "kind" | "name" | "label">, happenedAtMs: number): Promise<void> {
    // Not on the way to the command: by now it runs.
    const { appendHistory } = await import("holdfast/admin");
    const agoMs = Math.max(0, Math.round(performance.now() - happenedAtMs));
    await appendHistory(this.#holdfast, { ...this.#about, ...event, agoMs });
  }
}
