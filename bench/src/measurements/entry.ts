/** The parts of a measurement: its entries, the result of a run, and its targets. */
import type { Adapter, Connection } from "../adapters/adapter.js";
import type { Server } from "../server.js";

/** The conditions that all measurements of one run share. */
export interface Conditions {
  readonly server: Server;
  readonly connection: Connection;
  /** More independent servers, as many as the measurement needs. */
  readonly servers: readonly Server[];
  /** Length of one run. */
  readonly seconds: number;
  readonly repetitions: number;
  /** Callers per process on the hot key. */
  readonly callers: number;
  /** The number of leases held at the same time. */
  readonly leases: number;
  /** The number of callers in the larger of the two crowds. */
  readonly waiters: number;
}

/** One row of a table: a contestant to measure, or the reason why it is not measured. */
export interface Entry {
  readonly name: string;
  /** A "yardstick" is not a lock; locks are compared with it. */
  readonly role: Adapter["role"] | "yardstick";
  /** The entry that this one is compared with. Absent if there is none. */
  readonly yardstick?: string;
  /** Sets it up and warms it up, so that a run measures neither connecting nor compiling; or why it is not measured. */
  readonly prepare: ((conditions: Conditions) => Promise<Prepared>) | { readonly absent: string };
}

/** One number that a measurement yields. */
export interface Figure {
  readonly name: string;
  readonly unit: string;
  /** Digits after the decimal point in the table. */
  readonly digits: number;
  readonly better: "more" | "less";
  /** Whether values are lower bounds, because some waits were not over. */
  readonly atLeast?: boolean;
  /** Whether it has its own picture. The first figure of a measurement always has one. */
  readonly isDrawn?: boolean;
}

/** A target and its result. */
export interface Target {
  readonly what: string;
  /** The bound, for display. */
  readonly bound: string;
  /** The measured value, for display. */
  readonly measured: string;
  /** Null if it could not be decided, such as without the peers. */
  readonly reached: boolean | null;
}

/** A contestant that is ready to be measured any number of times. */
export interface Prepared {
  /**
   * One run.
   *
   * @returns a number for each figure, in the order of the figures
   * @throws  if the contestant broke a guarantee, such as exclusion, which makes its speed irrelevant
   */
  run(): Promise<Run>;
  /** Process ids of the callers, if the measurement needs them. */
  readonly pids?: readonly number[];
  close(): Promise<void>;
}

/** The result of a run. */
export interface Run {
  readonly values: readonly number[];
  /** The sections of part of the run, for a picture. */
  readonly sections?: readonly Section[];
}

/** One critical section of a caller. */
export interface Section {
  readonly process: number;
  readonly caller: number;
  readonly askedAtMs: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}
