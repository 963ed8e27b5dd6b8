/** The environment of a directed liveness scenario: servers, processes with separate connections, and its results. */
import type { Fault, HistoryRecord } from "../../history/records.js";
import type { Cell } from "../cell.js";
import type { ServerHandle, Topology } from "../stage.js";
import type { Actor } from "./actor.js";
import type { Measure } from "./measure.js";

/** The environment of a scenario. */
export interface Theater {
  readonly cell: Cell;
  readonly topology: Topology;
  /** The lock of the scenario; in a cluster, it is on the first server. */
  readonly lockName: string;
  /** Another name on the same server. */
  otherName(word: string): string;
  /** Whether the subject is Holdfast. */
  readonly isHoldfast: boolean;
  /** Whether leases are renewed, which not every peer supports. */
  readonly renews: boolean;
  /** How long to observe a wait that should have ended long before. */
  readonly patienceMs: number;
  /** Starts processes, and resolves when all are connected. */
  start(count: number): Promise<readonly Actor[]>;
  /** The server that stores the lock now. */
  server(): Promise<ServerHandle>;
  /** Resolves when that many claims wait for a lock; for a subject that cannot tell, after a while. */
  waiting(actor: Actor, lockName: string, count: number): Promise<void>;
  nowMs(): number;
  sleep(ms: number): Promise<void>;
  struck(fault: Omit<Fault, "type" | "id">): void;
  note(text: string): void;
  /** All records so far. */
  records(): readonly HistoryRecord[];
}

/** A directed scenario. It plays a row and returns its measurements. */
export interface Scenario {
  readonly row: string;
  play(theater: Theater): Promise<readonly Measure[]>;
}

/** Milliseconds as the seconds of a measure. */
export function seconds(ms: number): number {
  return ms / 1_000;
}
