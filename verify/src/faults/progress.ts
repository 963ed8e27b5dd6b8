/** The progress of a run in one line: rewritten in place on a terminal, otherwise printed every ten seconds. */
import type { CellOrder, Watcher } from "./pool.js";
import type { CellVerdict } from "./verdict.js";

const EVERY_MS = 10_000;
const EVERY_ON_TERMINAL_MS = 500;

/** The output stream. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Shows the progress of a run. */
export class Progress implements Watcher {
  readonly verdicts: CellVerdict[] = [];
  readonly #screen: Screen;
  readonly #now: () => number;
  readonly #beganMs: number;
  /** The counts of running cells, by cell, seed and subject. */
  readonly #underWay = new Map<string, { readonly operations: number; readonly faults: number }>();
  readonly #expectedCount: number | undefined;
  readonly #endsMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param expectedCount  how many cells will run; undefined if the run ends by time
   * @param endsMs  when the last cell begins, by `now`; undefined if the run ends by count
   */
  constructor(screen: Screen, now: () => number, expectedCount: number | undefined, endsMs: number | undefined) {
    this.#screen = screen;
    this.#now = now;
    this.#beganMs = now();
    this.#expectedCount = expectedCount;
    this.#endsMs = endsMs;
  }

  /** Starts to show the line. */
  start(): void {
    const everyMs = this.#screen.isTTY === true ? EVERY_ON_TERMINAL_MS : EVERY_MS;
    this.#timer = setInterval(() => this.#show(), everyMs);
  }

  /** Stops, and clears the line on a terminal. */
  stop(): void {
    clearInterval(this.#timer);
    if (this.#screen.isTTY === true) this.#screen.write("\r\u001b[K");
  }

  progress(order: CellOrder, operations: number, faults: number): void {
    this.#underWay.set(keyOf(order), { operations, faults });
  }

  done(verdict: CellVerdict): void {
    this.#underWay.delete(keyOf(verdict));
    this.verdicts.push(verdict);
  }

  /** The current line. */
  text(): string {
    const runs = [...this.verdicts, ...this.#underWay.values()];
    const operations = runs.reduce((sum, run) => sum + run.operations, 0);
    const faults = runs.reduce((sum, run) => sum + run.faults, 0);
    const bad = this.verdicts.filter(({ outcome }) => outcome !== "ok" && outcome !== "unavailable");
    const violations = bad.filter(({ outcome }) => outcome === "violation").length;
    const of = this.#expectedCount === undefined ? "" : ` of ${this.#expectedCount}`;
    return [
      `${this.verdicts.length}${of} cells`,
      `${operations} operations`,
      `${faults} faults`,
      `${violations} with violations`,
      `${bad.length - violations} void or toothless`,
      `${this.#left()} left`,
    ].join(", ");
  }

  #left(): string {
    const nowMs = this.#now();
    const pastMs = nowMs - this.#beganMs;
    const done = this.verdicts.length;
    const byCount = this.#expectedCount === undefined ? Number.NaN : (pastMs / done) * (this.#expectedCount - done);
    const leftMs = this.#endsMs === undefined ? byCount : Math.max(0, this.#endsMs - nowMs);
    return Number.isFinite(leftMs) ? showDuration(leftMs) : "?";
  }

  #show(): void {
    const { isTTY, columns = 120 } = this.#screen;
    this.#screen.write(isTTY === true ? `\r\u001b[K${this.text().slice(0, columns - 1)}` : `${this.text()}\n`);
  }
}

/** A duration such as `12 s` or `3 min 20 s`. */
export function showDuration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function keyOf({ cell, seed, subject }: Pick<CellVerdict, "cell" | "seed" | "subject">): string {
  return `${cell.id} ${seed} ${subject}`;
}
