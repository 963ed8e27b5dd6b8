import { consolePage } from "./console.js";
import { gap } from "./gap.js";
import { hot } from "./hot.js";
import { imports } from "./import.js";
import { leases } from "./leases.js";
import type { Measurement } from "./measurement.js";
import { parallel } from "./parallel.js";
import { redlockQuorum } from "./redlock.js";
import { renewal } from "./renewal.js";
import { retained } from "./retained.js";
import { serverTime } from "./server-time.js";
import { startup } from "./startup.js";
import { uncontended } from "./uncontended.js";
import { waiters } from "./waiters.js";
import { waiting } from "./waiting.js";

/** Every measurement, in the order of the table. */
export const MEASUREMENTS: readonly Measurement[] = [
  hot,
  gap,
  uncontended,
  retained,
  parallel,
  serverTime,
  waiting,
  waiters,
  leases,
  renewal,
  redlockQuorum,
  imports,
  startup,
  consolePage,
];
