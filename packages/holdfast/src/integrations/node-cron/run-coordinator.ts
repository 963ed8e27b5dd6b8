/**
 * The answer to node-cron's question whether this instance runs a fire: whoever writes its key first.
 *
 * The marker of a fire is a mutex of its key, taken for `ttlMs` and left on the server without us: neither the end of the run, nor
 * `close`, nor the death of the process frees it sooner, and all that is true of a grant is true of it. Beside it a run
 * has a permit of the semaphore with the name of the coordinator, renewed while the run goes on, which tells the living
 * from the dead.
 */
import { createHash } from "node:crypto";
import { type Holdfast, type Lease, PausedError } from "../../index.js";
import { checkKnown, checkWhole, delay, internalsOf, type Session } from "../../internal.js";
import { checkBytes, nameOf } from "../../recipes/names.js";
import { type Refusal, refusalOf } from "../../recipes/refusal.js";
import { checkHistory } from "../../recipes/scheduled/options.js";
import { type BegunRun, type RunCounts, RunLog } from "../../recipes/scheduled/run-log.js";

/** How fires are shared out. */
export interface RunCoordinatorOptions {
  /**
   * What the fires of this coordinator are kept under, and the history is found by: a semaphore of that name has a permit for each run that
   * goes on. Services with tasks of the same names need different ones. 1 to 255 bytes.
   * @default "node-cron"
   */
  readonly name?: string | undefined;

  /**
   * Longest random delay before the key is written, so that it is not always the same host that runs; never more than half of the
   * `distributedLease` of the task. Whole milliseconds, 0 to 3,600,000.
   * @default 0
   */
  readonly jitterMaxMs?: number | undefined;

  /**
   * Whether runs and refusals are told to the history of `name`, for `readHistory` and `holdfast history`. Not told is the refusal that is
   * no news: that another instance runs.
   * @default false
   */
  readonly history?: boolean | undefined;
}

/** What `setRunCoordinator` of node-cron 4.4 and later takes. Neither function rejects. */
export interface RedisRunCoordinator {
  /**
   * Whether this instance runs that fire: it does if it is the first to ask. False as well if the server does not answer, if it is in
   * failover grace, while the semaphore `name` is paused, and once the Holdfast closes; the channel `holdfast:run:skipped` says which.
   *
   * @param key    names the task and the time of the fire; nothing is read out of it
   * @param ttlMs  how long it is known that the fire was taken: longer than the clocks of two hosts differ
   */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  /** The run of that fire has ended here. The fire stays taken. */
  onComplete(key: string): Promise<void>;
  /** How often it said yes and no in this process. */
  readonly counts: RunCounts;
}

/** One semaphore for all runs, and so many are never reached. */
const PERMITS = 1_000_000;
const LIVING_LEASE_MS = 15_000;
const LONGEST_NAME_BYTES = 512;
const LONGEST_LABEL_BYTES = 256;
const SHORTEST_MS = 100;
const YEAR_MS = 31_536_000_000;

/**
 * Makes the coordinator for `setRunCoordinator`, or for the option `runCoordinator` of one task.
 *
 * Promised, while the server forgets nothing: of all instances that ask for one key within `ttlMs` of the first, one gets
 * true. **Not promised is that the fire is run to its end**: that instance may die.
 *
 * @param holdfast  what `createHoldfast` returned, on one server, behind Sentinel or on a cluster
 * @throws TypeError, RangeError  a wrong option
 * @throws UnsupportedError       this Holdfast is on several independent servers
 */
export function runCoordinator(holdfast: Holdfast, options: RunCoordinatorOptions = {}): RedisRunCoordinator {
  const {
    name = "node-cron",
    jitterMaxMs = 0,
    history = false,
  } = checkKnown(options, ["name", "jitterMaxMs", "history"]);
  checkBytes("name", name);
  checkWhole("jitterMaxMs", jitterMaxMs, 0, 3_600_000);
  checkHistory(history);
  return new Coordinator(holdfast, name, jitterMaxMs, history);
}

/** A fire that this instance runs. */
interface Running extends BegunRun {
  /** Undefined where the server did not answer when it was to be taken: the fire is ours all the same. */
  readonly living: Lease | undefined;
  readonly beganAtMs: number;
}

class Coordinator implements RedisRunCoordinator {
  readonly #holdfast: Holdfast;
  readonly #name: string;
  readonly #jitterMaxMs: number;
  readonly #session: Session;
  readonly #log: RunLog;
  readonly #running = new Map<string, Running>();

  constructor(holdfast: Holdfast, name: string, jitterMaxMs: number, history: boolean) {
    this.#holdfast = holdfast;
    this.#name = name;
    this.#jitterMaxMs = jitterMaxMs;
    this.#session = internalsOf(holdfast, name).session;
    this.#log = new RunLog(holdfast, { kind: "semaphore", name, label: "", history });
  }

  get counts(): RunCounts {
    return this.#log.counts;
  }

  async shouldRun(key: string, ttlMs: number): Promise<boolean> {
    try {
      const leaseMs = Math.min(YEAR_MS, Math.max(SHORTEST_MS, Math.ceil(ttlMs)));
      if (this.#jitterMaxMs > 0) {
        const delayMs = this.#session.runtime.random() * Math.min(this.#jitterMaxMs, leaseMs / 2);
        await delay(this.#session, this.#name, delayMs, undefined);
      }
      const marker = await this.#take(key, leaseMs);
      // Granted again after its time, the key names this run alone: nobody could end one before it any more.
      await this.onComplete(key);
      const living = await this.#live(key);
      const { owner, token } = living ?? marker;
      const run: Running = { tick: key, owner, token, living, beganAtMs: this.#session.runtime.monotonicMs() };
      this.#running.set(key, run);
      this.#log.started(run);
      return true;
    } catch (error) {
      // Nothing may be thrown into the scheduler: what is none of ours ends here too.
      const refusal: Refusal = refusalOf(error) ?? { outcome: "refused", reason: "unavailable", ...asError(error) };
      // Whoever has the fire has it for good.
      this.#log.skipped(String(key), refusal.reason === "held" ? { ...refusal, reason: "already-done" } : refusal);
      return false;
    }
  }

  async onComplete(key: string): Promise<void> {
    const run = this.#running.get(key);
    if (run === undefined) return;
    this.#running.delete(key);
    // It ends by itself if that goes wrong.
    await run.living?.release().catch(() => {});
    await this.#log.ended(run, "untold", this.#session.runtime.monotonicMs() - run.beganAtMs);
  }

  /** Takes the fire for so long. @throws AcquireTimeoutError  somebody has it already; and as `Mutex.acquire` */
  async #take(key: string, leaseMs: number): Promise<Pick<Lease, "owner" | "token">> {
    const wish = { leaseMs, renew: false, maxHoldMs: Infinity, waitMs: 0, throughPause: false };
    const marker = await this.#holdfast.mutex(this.#nameOf(key)).acquire(wish);
    const { owner, token } = marker;
    marker.export();
    return { owner, token };
  }

  /** Shows that we live, and asks whether anybody has paused it all. @throws PausedError */
  async #live(key: string): Promise<Lease | undefined> {
    const label = Buffer.from(key)
      .subarray(0, LONGEST_LABEL_BYTES - 3)
      .toString();
    const wish = { leaseMs: LIVING_LEASE_MS, renew: true, maxHoldMs: Infinity, waitMs: 0, throughPause: false, label };
    try {
      return await this.#holdfast.semaphore(this.#name, { permits: PERMITS }).acquire(wish);
    } catch (error) {
      if (error instanceof PausedError) throw error;
      // The fire is ours, and nobody else runs it.
      return undefined;
    }
  }

  /** No two coordinators have the same for any of their keys. A key may be longer than a name. */
  #nameOf(key: string): string {
    const name = nameOf(this.#name, key);
    if (Buffer.byteLength(name) <= LONGEST_NAME_BYTES) return name;
    return `sha256:${createHash("sha256").update(name).digest("hex")}`;
  }
}

function asError(error: unknown): Pick<Refusal, "error"> {
  return error instanceof Error ? { error } : { error: new Error(String(error)) };
}
