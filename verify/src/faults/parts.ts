/** What a run of a cell is put together from. Tests put other parts in. */
import type { HistoryRecord } from "../history/records.js";
import type { Random } from "../simulation/random.js";
import type { Cell } from "./cell.js";
import type { Injection } from "./injection.js";
import type { Stage } from "./stage.js";
import type { Breach } from "./verdict.js";

/** What a stage is opened for. */
export interface Opening {
  readonly cell: Cell;
  readonly subject: string;
  readonly injection: Injection;
  readonly random: Random;
  readonly clientCount: number;
  readonly leaseMs: number;
}

/** Servers and clients that run, and what was recorded of them. */
export interface OpenStage {
  readonly stage: Stage;
  /** All that was recorded until now. */
  records(): readonly HistoryRecord[];
  /** How many operations and faults there were until now, near enough to be shown. */
  counts(): { readonly operations: number; readonly faults: number };
  /** What the injection has decided by itself. */
  decided?(): Pick<Judgement, "breaches" | "checked">;
  /** Adds a record to the history. */
  record(record: HistoryRecord): void;
  /** Clients end as they should. @returns what they left behind: timers, sockets, unhandled rejections */
  closeClients(): Promise<readonly string[]>;
  /** Ends whatever is left, also after a failure; a second call does nothing. */
  stop(): Promise<void>;
}

/** What the judges say of a history. */
export interface Judgement {
  readonly breaches: readonly Breach[];
  /** How many there are by property; `breaches` has no more of each than say something. */
  readonly breached?: Readonly<Record<string, number>>;
  /** Cases decided by property. */
  readonly checked: Readonly<Record<string, number>>;
  /** Lock names about which the search came to no end. */
  readonly unknown: number;
  readonly notes: readonly string[];
}

/** See the file header. */
export interface Parts {
  /** Undefined if it is not written yet. */
  injection(cell: Cell): Injection | undefined;
  open(opening: Opening): Promise<OpenStage>;
  judge(cell: Cell, records: readonly HistoryRecord[], subject: string): Judgement;
}
