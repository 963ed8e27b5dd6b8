import type { Conditions } from "../measurements/entry.js";
import { leasesCurve } from "./leases.js";
import type { Curve } from "./report.js";
import { freeLocksCurve, type OnRun, processesCurve, waitersCurve } from "./throughput.js";

const SECONDS = 1;
/** A third of the lease: each is renewed once in this time. */
const WATCHED_SECONDS = 10;

/** Every curve in turn; `seconds` is the length of a run, if the caller wants another than each curve has. */
export async function measureCurves(
  conditions: Omit<Conditions, "seconds">,
  seconds: number | undefined,
  cores: number,
  onRun: OnRun,
): Promise<readonly Curve[]> {
  const own = { ...conditions, seconds: seconds ?? SECONDS };
  return [
    await waitersCurve(own, cores, onRun),
    await processesCurve(own, cores, onRun),
    await freeLocksCurve(own, cores, onRun),
    await leasesCurve({ ...conditions, seconds: seconds ?? WATCHED_SECONDS }, onRun),
  ];
}
