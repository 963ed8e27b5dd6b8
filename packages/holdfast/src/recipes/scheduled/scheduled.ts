/**
 * A function that every instance of a service calls at the same times, and one of them runs.
 *
 * What decides is a marker and not only a lock: who began last, and when. It outlives the run, so that an instance whose clock is
 * late finds it, and a run that is over in a moment is not run again. The lock keeps two runs from overlapping.
 */
import type { Holdfast, Lease } from "../../index.js";
import { checkName, internalsOf, type Runtime, show } from "../../internal.js";
import type { Refusal } from "../refusal.js";
import type { RunEnding } from "../run-events.js";
import { WorkLostError } from "../under-lock.js";
import { giveBack } from "./giving-back.js";
import { type ResolvedScheduled, resolveScheduled, type ScheduledOptions } from "./options.js";
import { type RunCounts, RunLog } from "./run-log.js";
import { settledWithin } from "./settled-within.js";
import { type Begun, type StartPlace, start } from "./start.js";

/** What came of one call: what the work returned, or why it was not run here. */
export type ScheduledResult<Value> = { readonly outcome: "ran"; readonly value: Value } | Refusal;

/** The function to give to a scheduler. */
export interface Scheduled<Value> {
  /** As schedulers call it. What it is called with is ignored; it resolves as below, and they have no use for that. */
  (scheduler: unknown, ...context: readonly unknown[]): Promise<void>;
  (): Promise<ScheduledResult<Value>>;
  /** How often it ran and was skipped in this process. */
  readonly counts: RunCounts;
}

/** Where runs may overlap each is a permit of the name's semaphore: so many are never reached. */
const OVERLAPPING = 1_000_000;
const SUCCESS = 0;
const FAILURE = 1;
const LOST = 2;
/** Redis may be what failed: whoever is refused next then finds a run without an end. */
const LONGEST_NOTE_MS = 1_000;

/**
 * Makes `work` a function that runs on one of all the instances that call it at the same time, or not at all.
 *
 * Promised, while the server forgets nothing: of two calls that are less than nine tenths of `everyMs` apart, by the server's clock,
 * one runs at most, whatever the clocks of the hosts say. With `overlap: "skip"` two never are both inside the validity of their leases. **Not promised is
 * that there is a run each time**: it errs towards a refusal, which is returned, published on `holdfast:run:skipped` and counted.
 *
 * The function that it returns resolves to `{ outcome: "ran", value }`, or to a Refusal: `already-done` when another instance has run,
 * `held` when a run of before goes on (or somebody else has the lock), `paused`, `grace`, or `unavailable` when the server does not
 * answer, and then nothing is run. It rejects with what `work` throws, the same object; with WorkLostError if the lease was lost
 * and `work` succeeded; with ClosedError if the Holdfast was closed; with the reason of `signal`.
 *
 * @param holdfast  what `createHoldfast` returned, on one server, behind Sentinel or on a cluster
 * @param name      of the job, 1 to 512 bytes; its mutex and its marker are those that `holdfast run NAME --once-per` uses
 * @param work      gets the lease of its run: `signal`, `token`, `assertHeld()`
 * @throws TypeError, RangeError  a wrong argument
 * @throws UnsupportedError       this Holdfast is on several independent servers
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
  // A promise of more than a scheduler wants is one that it can take.
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
    const ending: RunEnding = failure !== undefined ? "failed" : loss !== undefined ? "lost" : "succeeded";
    const code = loss !== undefined ? LOST : failure === undefined ? SUCCESS : FAILURE;
    // Both at once: a Holdfast that closes has waited for the lease, and the connection may go as soon as that is given back.
    await Promise.all([
      settledWithin(this.#runtime, marker.end(code), LONGEST_NOTE_MS),
      this.log.ended(run, ending, ranMs, failure === undefined ? loss : failure.error),
    ]);
    if (failure !== undefined) throw failure.error;
    if (loss !== undefined) {
      const { reason, token, owner, forced } = loss;
      throw new WorkLostError(lease.name, { reason, token, owner, forced, value });
    }
    return { outcome: "ran", value: value as Value }; // the work has returned it
  }
}
