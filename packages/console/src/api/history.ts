/** The history: `api/history`, `api/history.csv`. */
import type { KindName, Stamped } from "./document.js";

/** How a hold or an attempt ended; `held` has not ended. */
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

/** One history entry. */
export interface HistoryRow {
  readonly id: string;
  /**
   * When the hold ended or the event happened, by the server's clock. For a hold without a recorded end, when it began.
   */
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
  /** Start of the hold, for the timeline. */
  readonly sinceAtMs: number | null;
  readonly label: string | null;
  /** The reason for a force-release, a pause or a skipped run, and who gave it. */
  readonly reason: string | null;
  readonly by: string | null;
}

/** Response of GET api/history, newest first. */
export interface HistoryAnswer extends Stamped {
  readonly rows: readonly HistoryRow[];
  /** True if more entries match, or might match, than `rows` has. The CSV file then ends with a line that says so. */
  readonly isCut: boolean;
}
