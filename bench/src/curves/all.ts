import type { Conditions } from "../measurements/entry.js";
import { leasesCurve } from "./leases.js";
import { mastersCurve } from "./masters.js";
import type { Curve } from "./report.js";
import { freeLocksCurve, type OnRun, processesCurve, waitersCurve } from "./throughput.js";

/** A curve that can be measured. */
export interface CurvePlan {
  /** The name for `--curves --only`, and of its picture. */
  readonly name: string;
  /** Length of one run, unless the command line says otherwise. */
  readonly seconds: number;
  measure(conditions: Conditions, cores: number, onRun: OnRun): Promise<Curve>;
}

const SECONDS = 1;
/** A third of the lease, so that each lease is renewed once. */
const WATCHED_SECONDS = 10;

/** Every curve. */
export const CURVES: readonly CurvePlan[] = [
  { name: "waiters", seconds: SECONDS, measure: waitersCurve },
  { name: "processes", seconds: SECONDS, measure: processesCurve },
  { name: "free-locks", seconds: SECONDS, measure: freeLocksCurve },
  {
    name: "leases",
    seconds: WATCHED_SECONDS,
    measure: (conditions, _, onRun) => leasesCurve(conditions, onRun),
  },
  { name: "masters", seconds: SECONDS, measure: mastersCurve },
];
