/** `--once-per`: at most one start in each period. The library implements the rule (`holdfast/period-marker`). */

import { plain } from "@holdfast/console/text";
import type { Holdfast, Lease } from "holdfast";
import type { LastRun, PeriodStart } from "holdfast/period-marker";
import { sleep } from "../../frame/durations.js";
import type { RunPlan } from "./flags.js";
import { processOf } from "./messages.js";
import { Refusal } from "./refusal.js";

/** Timeout for recording the end of a run. If Redis is unreachable, the record stays without an end. */
const LONGEST_NOTE_MS = 1_000;

/** Applies `--once-per` to one run. The server's clock is read before the run's jitter and wait. */
export class PeriodRun {
  readonly #holdfast: Holdfast;
  readonly #plan: RunPlan;
  readonly #readAtMs: number;
  #start: Extract<PeriodStart, { outcome: "started" }> | undefined;

  private constructor(holdfast: Holdfast, plan: RunPlan, readAtMs: number) {
    this.#holdfast = holdfast;
    this.#plan = plan;
    this.#readAtMs = readAtMs;
  }

  /** Reads the server's clock. Returns undefined without `--once-per`. @throws StoreError */
  static async read(holdfast: Holdfast, plan: RunPlan): Promise<PeriodRun | undefined> {
    if (plan.oncePer === undefined) return undefined;
    const { serverTimeMs } = await import("holdfast/period-marker");
    return new PeriodRun(holdfast, plan, await serverTimeMs(holdfast, plan.name));
  }

  /**
   * Marks the period as used by this run, immediately after the lease was granted.
   *
   * @throws Refusal  another run has used the period
   * @throws StoreError, LeaseLostError  as in the library; the period may then count as used
   */
  async enter(lease: Lease): Promise<void> {
    const { oncePer, untilSuccess, name } = this.#plan;
    if (oncePer === undefined) return;
    const { startOfPeriod } = await import("holdfast/period-marker");
    const every = oncePer.kind === "rolling" ? oncePer.periodMs : oncePer.unit;
    const start = await startOfPeriod(this.#holdfast, lease, { every, readAtMs: this.#readAtMs, untilSuccess });
    if (start.outcome === "started") {
      this.#start = start;
      return;
    }
    const opensAtMs = start.opensAtMs;
    const message = `${plain(name)} already ran in this period (${oncePer.text}): ${lastRunText(start.lastRun)}`;
    throw new Refusal("already-done", message, { resumesAtMs: opensAtMs });
  }

  /** Records how the command ended, for the message of the next refused run. Never rejects. */
  async ended(exitCode: number): Promise<void> {
    if (this.#start === undefined) return;
    await Promise.race([this.#start.end(exitCode).catch(() => {}), sleep(LONGEST_NOTE_MS)]);
  }
}

/** For example `ci-3/812 (root) at 03:00:02Z, exit 0`. */
function lastRunText(run: LastRun): string {
  const { startedAtMs, endedAtMs, exitCode } = run;
  const at = new Date(startedAtMs).toISOString();
  const isToday = at.slice(0, 10) === new Date().toISOString().slice(0, 10);
  const when = isToday ? `${at.slice(11, 19)}Z` : `${at.slice(0, 19)}Z`;
  const end = endedAtMs === undefined ? "not ended yet" : `exit ${exitCode ?? "unknown"}`;
  const { host, pid, clientName, owner } = run;
  return `${processOf({ host, pid, clientName, owner })} at ${when}, ${end}`;
}
