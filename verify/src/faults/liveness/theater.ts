/** What a directed scenario of liveness plays with: servers, processes with lines of their own, and where its results go. */
import type { Fault, HistoryRecord } from "../../history/records.js";
import type { Cell } from "../cell.js";
import type { ServerHandle, Topology } from "../stage.js";
import type { Actor } from "./actor.js";
import type { Measure } from "./measure.js";

/** See the file header. */
export interface Theater {
  readonly cell: Cell;
  readonly topology: Topology;
  /** The lock that the scenario is about; in a cluster, one on the first server. */
  readonly lockName: string;
  /** Another name on the same server. */
  otherName(word: string): string;
  /** Whether this library is played, and not a peer. */
  readonly isHoldfast: boolean;
  /** Whether leases are renewed: not every peer can. */
  readonly renews: boolean;
  /** How long a wait is watched that should have ended long before. */
  readonly patienceMs: number;
  /** Starts processes, and resolves when all of them are connected. */
  start(count: number): Promise<readonly Actor[]>;
  /** The server that has the lock now. */
  server(): Promise<ServerHandle>;
  /** Resolves when so many claims wait for a lock; for a subject that cannot say, after a while. */
  waiting(actor: Actor, lockName: string, count: number): Promise<void>;
  nowMs(): number;
  sleep(ms: number): Promise<void>;
  struck(fault: Omit<Fault, "type" | "id">): void;
  note(text: string): void;
  /** All that was recorded until now. */
  records(): readonly HistoryRecord[];
}

/** A directed scenario, which plays a row and returns what it has measured. */
export interface Scenario {
  readonly row: string;
  play(theater: Theater): Promise<readonly Measure[]>;
}

/** Milliseconds as the seconds of a measure. */
export function seconds(ms: number): number {
  return ms / 1_000;
}
