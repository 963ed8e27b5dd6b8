/** The parts of a run of a cell. Tests replace them. */
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

/** Running servers and clients, with their records. */
export interface OpenStage {
  readonly stage: Stage;
  /** All records so far. */
  records(): readonly HistoryRecord[];
  /** The approximate number of operations and faults so far, for display. */
  counts(): { readonly operations: number; readonly faults: number };
  /** What the injection itself has decided. */
  decided?(): Pick<Judgement, "breaches" | "checked">;
  /** Adds a record to the history. */
  record(record: HistoryRecord): void;
  /** Ends the clients normally. @returns what they left behind: timers, sockets, unhandled rejections */
  closeClients(): Promise<readonly string[]>;
  /** Ends everything that remains, also after a failure; a second call does nothing. */
  stop(): Promise<void>;
}

/** The judges' findings about a history. */
export interface Judgement {
  readonly breaches: readonly Breach[];
  /** The number of breaches by property; `breaches` contains only as many as are useful. */
  readonly breached?: Readonly<Record<string, number>>;
  /** Decided cases by property. */
  readonly checked: Readonly<Record<string, number>>;
  /** The number of lock names whose search did not finish. */
  readonly unknown: number;
  readonly notes: readonly string[];
}

/** The parts. */
export interface Parts {
  /** Undefined if the injection is not implemented yet. */
  injection(cell: Cell): Injection | undefined;
  open(opening: Opening): Promise<OpenStage>;
  judge(cell: Cell, records: readonly HistoryRecord[], subject: string): Judgement;
}
