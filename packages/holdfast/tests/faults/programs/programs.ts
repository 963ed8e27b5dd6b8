/** The programs that fault tests run in their own processes. They use the built library, as a user does. */
import { type Program, startProgram } from "../../../../../tests/support/program.js";

/** A worker's reply to `acquire`. */
export interface Acquired {
  readonly token: number;
  readonly owner: string;
  readonly validForMs: number;
  /** When the lock was granted, on a clock that all processes share. */
  readonly atMs: number;
}

/** Starts programs/worker.mjs. */
export function startWorker(port: number): Program {
  return startProgram(new URL("./worker.mjs", import.meta.url), { port });
}

/** Milliseconds on the clock of `Acquired.atMs`. */
export function sharedClockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Starts programs/crowd.mjs. */
export function startCrowd(port: number): Program {
  return startProgram(new URL("./crowd.mjs", import.meta.url), { port });
}

/** Starts programs/opposite.mjs. */
export function startOpposite(port: number): Program {
  return startProgram(new URL("./opposite.mjs", import.meta.url), { port });
}
