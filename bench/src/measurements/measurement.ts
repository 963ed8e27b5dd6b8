/** The one form of all measurements. A new one is one file in this folder and one line in all.ts. */
import type { Adapter, Connection } from "../adapters/adapter.js";
import type { Server } from "../server.js";

/** What is measured, and what it tells. */
export interface Measurement {
  /** The word after `--only`. */
  readonly name: string;
  /** One line for people, with the sizes of this run. */
  title(conditions: Conditions): string;
  readonly figures: readonly Figure[];
  /** Sets one contestant up and warms it up, so that a run measures neither connecting nor compiling. */
  prepare(adapter: Adapter, conditions: Conditions): Promise<Prepared>;
}

/** What all measurements of one call share. */
export interface Conditions {
  readonly server: Server;
  readonly connection: Connection;
  /** Length of one run. */
  readonly seconds: number;
  /** Callers per process on the hot key. */
  readonly callers: number;
}

/** One number that a measurement yields. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  /** Digits after the point, in the table. */
  readonly digits: number;
}

/** A contestant ready to be measured as often as wanted. */
export interface Prepared {
  /**
   * One run.
   *
   * @returns a number for each figure, in their order
   * @throws  where the contestant broke a promise, such as exclusion: its speed is then of no interest
   */
  run(): Promise<readonly number[]>;
  close(): Promise<void>;
}
