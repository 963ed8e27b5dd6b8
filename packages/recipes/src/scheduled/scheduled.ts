/**
 * Scheduled jobs: every instance of a service calls the job at the same times, and one instance runs it.
 *
 * A marker on the server decides which instance runs. It records which run began last, and when. The marker outlives
 * the run, so an instance whose clock is behind finds it and does not repeat a short run. The lock prevents runs from
 * overlapping.
 */
import type { Holdfast, Lease } from "holdfast";
import { checkName, internalsOf, type Runtime, show } from "holdfast/internal";
import type { Refusal } from "../refusal.js";
import type { RunEnding } from "../run-events.js";
import { WorkLostError } from "../under-lock.js";
import { giveBack } from "./giving-back.js";
import { type ResolvedScheduled, resolveScheduled, type ScheduledOptions } from "./options.js";
import { type RunCounts, RunLog } from "./run-log.js";
import { settledWithin } from "./settled-within.js";
import { type Begun, type StartPlace, start } from "./start.js";

/** The result of one call: the value that the work returned, or the reason why it did not run here. */
export type ScheduledResult<Value> = { readonly outcome: "ran"; readonly value: Value } | Refusal;

/** A function to pass to a scheduler. */
export interface Scheduled<Value> {
  /** The signature that schedulers expect. Arguments are ignored. */
  (scheduler: unknown, ...context: readonly unknown[]): Promise<void>;
  /** Runs the work unless another instance does. Resolves to the result; see `scheduled` for its errors. */
  (): Promise<ScheduledResult<Value>>;
  /** How often the job ran and was skipped in this process. */
  readonly counts: RunCounts;
}

/** Permits of the semaphore for runs that may overlap. Each run takes one; this number is never reached. */
const OVERLAPPING = 1_000_000;
const SUCCESS = 0;
const FAILURE = 1;
const LOST = 2;
/**
 * Longest wait for the marker to record the end of a run, in milliseconds. It is short because Redis may be
 * down, which may also be why the run failed. If the wait ends first, the marker shows a run that has not ended.
 */
const LONGEST_NOTE_MS = 1_000;

/**
 * Returns a function that runs `work` on at most one of the instances that call it at the same time.
 *
 * Guarantees, as long as the server loses no data: of two calls less than nine tenths of `everyMs` apart, by the
 * server's clock, at most one runs, regardless of the hosts' clocks. With `overlap: "skip"`, the leases of two runs are
 * never valid at the same time. **A run may be missed**: when in doubt, the call is refused. A refusal is returned,
 * published on `holdfast:run:skipped` and counted.
 *
 * The returned function resolves to `{ outcome: "ran", value }` or to a Refusal:
 *
 * - `already-done`: another instance has already run the job
 * - `held`: an earlier run has not ended, or another caller holds the lock
 * - `paused`, `grace`: see RefusalReason
 * - `unavailable`: the server did not reply; `work` was not called
 *
 * It rejects with the error that `work` threw, unchanged; with WorkLostError if `work` returned after its lease was
 * lost; with ClosedError if this Holdfast was closed; or with the reason of `signal`.
 *
 * @param holdfast  the object returned by `createHoldfast`, on one server, behind Sentinel or on a cluster
 * @param name      name of the job, 1 to 512 bytes; `holdfast run NAME --once-per` uses the same mutex and marker
 * @param work      gets the lease of its run: `signal`, `token`, `assertHeld()`
 * @throws TypeError, RangeError  an invalid argument
 * @throws UnsupportedError       this Holdfast uses several independent servers
 *
 * @example
 * const report = scheduled(holdfast, "nightly-report", (lease) => sendReport({ signal: lease.signal }), {
 *   everyMs: 86_400_000,
 * });
 * setInterval(() => report().catch(alertOperator), 86_400_000);
 */
export function scheduled<Value>(
  holdfast: Holdfast,
  name: string,
  work: (lease: Lease) => Value | Promise<Value>,
  options: ScheduledOptions,
): Scheduled<Value> {
  checkName(name);
  const resolved = resolveScheduled(options);
  if (typeof work !== "function") throw new TypeError(`work must be a function; got ${show(work)}`);
  const job = new Job(holdfast, name, work, resolved);
  // One function fits both signatures, because a scheduler ignores the result.
  return Object.assign(() => job.call(), { counts: job.log.counts }) as Scheduled<Value>;
}

class Job<Value> {
  readonly log: RunLog;
  readonly #place: StartPlace;
  readonly #work: (lease: Lease) => Value | Promise<Value>;
  readonly #options: ResolvedScheduled;
  readonly #runtime: Runtime;

  constructor(
    holdfast: Holdfast,
    name: string,
    work: (lease: Lease) => Value | Promise<Value>,
    options: ResolvedScheduled,
  ) {
    const { overlap, label, history } = options;
    const { session } = internalsOf(holdfast, name);
    this.#runtime = session.runtime;
    const isExclusive = overlap === "skip";
    const lock = isExclusive ? holdfast.mutex(name) : holdfast.semaphore(name, { permits: OVERLAPPING });
    this.#place = { holdfast, name, lock, session };
    this.#work = work;
    this.#options = options;
    this.log = new RunLog(holdfast, { kind: isExclusive ? "mutex" : "semaphore", name, label, history });
  }

  async call(): Promise<ScheduledResult<Value>> {
    const { calledAtMs, found } = await start(this.#place, this.#options);
    const tick = new Date(calledAtMs).toISOString();
    if (!("reason" in found)) return this.#run(tick, found);
    this.log.skipped(tick, found);
    return found;
  }

  async #run(tick: string, begun: Begun): Promise<ScheduledResult<Value>> {
    const { lease, marker } = begun;
    const run = { tick, owner: lease.owner, token: lease.token };
    const beganAtMs = this.#runtime.monotonicMs();
    this.log.started(run);
    let failure: { readonly error: unknown } | undefined;
    let value: Value | undefined;
    try {
      value = await this.#work(lease);
    } catch (error) {
      failure = { error };
    }
    const ranMs = this.#runtime.monotonicMs() - beganAtMs;
    const loss = await giveBack(this.#place.holdfast, this.#runtime, lease, this.#options.minHoldMs - ranMs);
    const ending: RunEnding = loss !== undefined ? "lost" : failure !== undefined ? "failed" : "succeeded";
    const code = loss !== undefined ? LOST : failure === undefined ? SUCCESS : FAILURE;
    // These run concurrently, because `close` waits only for the lease: after its release, the connection can close at
    // any moment.
    await Promise.all([
      settledWithin(this.#runtime, marker.end(code), LONGEST_NOTE_MS),
      this.log.ended(run, ending, ranMs, loss ?? failure?.error),
    ]);
    if (failure !== undefined) throw failure.error;
    if (loss !== undefined) {
      const { reason, token, owner, forced } = loss;
      throw new WorkLostError(lease.name, { reason, token, owner, forced, value });
    }
    return { outcome: "ran", value: value as Value }; // the work has returned it
  }
}
