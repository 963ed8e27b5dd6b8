/** What measurements are made of: who takes part, what a run yields, what was to be reached. */
import type { Adapter, Connection } from "../adapters/adapter.js";
import type { Server } from "../server.js";

/** What all measurements of one call share. */
export interface Conditions {
  readonly server: Server;
  readonly connection: Connection;
  /** More servers, each for itself, as many as the measurement asks for. */
  readonly servers: readonly Server[];
  /** Length of one run. */
  readonly seconds: number;
  readonly repetitions: number;
  /** Callers per process on the hot key. */
  readonly callers: number;
  /** How many leases are held at the same time. */
  readonly leases: number;
  /** How many callers wait in the larger of the two crowds. */
  readonly waiters: number;
}

/** One line of a table: a candidate that is measured, or the reason why it is not. */
export interface Entry {
  readonly name: string;
  /** A yardstick is not a lock, but what locks are compared with. */
  readonly role: Adapter["role"] | "yardstick";
  /** The entry that this one's ratio is to; absent where there is none. */
  readonly yardstick?: string;
  /** Sets it up and warms it up, so that a run measures neither connecting nor compiling; or why it cannot take part. */
  readonly prepare: ((conditions: Conditions) => Promise<Prepared>) | { readonly absent: string };
}

/** One number that a measurement yields. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  /** Digits after the point, in the table. */
  readonly digits: number;
  readonly better: "more" | "less";
  /** Values are shown as a lower bound, for waits that were not over. */
  readonly atLeast?: boolean;
  /** Whether it has a picture of its own; the first figure of a measurement always has. */
  readonly isDrawn?: boolean;
}

/** One number to reach. */
export interface Target {
  readonly what: string;
  /** The bound, in words and signs. */
  readonly bound: string;
  /** What was measured, in words and numbers. */
  readonly measured: string;
  /** Null where it could not be told, such as without the peers. */
  readonly reached: boolean | null;
}

/** A contestant ready to be measured as often as wanted. */
export interface Prepared {
  /**
   * One run.
   *
   * @returns a number for each figure, in their order
   * @throws  where the contestant broke a promise, such as exclusion: its speed is then of no interest
   */
  run(): Promise<Run>;
  /** The processes that call, where the measurement needs to know them. */
  readonly pids?: readonly number[];
  close(): Promise<void>;
}

/** What a run yields. */
export interface Run {
  readonly values: readonly number[];
  /** Who held when, in a part of the run, for a picture. */
  readonly sections?: readonly Section[];
}

/** One section of a caller. */
export interface Section {
  readonly process: number;
  readonly caller: number;
  readonly askedAtMs: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}
