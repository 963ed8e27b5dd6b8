import { hot } from "./hot.js";
import type { Measurement } from "./measurement.js";
import { parallel } from "./parallel.js";
import { serverTime } from "./server-time.js";
import { uncontended } from "./uncontended.js";

/** Every measurement, in the order of the table. */
export const MEASUREMENTS: readonly Measurement[] = [uncontended, parallel, serverTime, hot];
