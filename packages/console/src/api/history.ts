/** What has happened: `api/history`, `api/history.csv`. */
import type { KindName, Stamped } from "./document.js";

/** How a hold, or an attempt, ended; `held` has not ended. */
export type HistoryOutcome =
  | "held"
  | "ending"
  | "released"
  | "lost"
  | "expired"
  | "forced"
  | "skipped"
  | "paused"
  | "resumed";

/** One line of history. */
export interface HistoryRow {
  readonly id: string;
  /** When it was written: at the end of a hold. */
  readonly writtenAtMs: number;
  readonly kind: KindName | null;
  readonly name: string;
  readonly outcome: HistoryOutcome;
  readonly owner: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly app: string | null;
  readonly token: number | null;
  readonly waitedMs: number | null;
  readonly heldMs: number | null;
  /** Begin of the hold, for the timeline. */
  readonly sinceAtMs: number | null;
  readonly label: string | null;
  /** Of a forced release, a pause or a skipped run: why, and who did it. */
  readonly reason: string | null;
  readonly by: string | null;
}

/** GET api/history, newest first. */
export interface HistoryAnswer extends Stamped {
  readonly rows: readonly HistoryRow[];
  /** True if there are more than the limit. */
  readonly isCut: boolean;
  /** False: nobody has kept a history, or it cannot be read here. */
  readonly isKept: boolean;
}
