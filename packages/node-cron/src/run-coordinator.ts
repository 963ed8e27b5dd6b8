/**
 * Decides for node-cron whether this instance runs a task at one of its scheduled times, called a fire. The first
 * instance to acquire the marker of the fire runs it.
 *
 * The marker is a mutex named after the key of the fire. It is acquired for `ttlMs` and never released: it outlives the
 * run, `close` and the process. It gives the same guarantees as any grant. A run also holds a permit of the semaphore
 * that is named after the coordinator. The permit is renewed while the run continues, so it shows which runs are alive.
 */
import { createHash } from "node:crypto";
import type { Refusal, RunCounts } from "@holdfast/recipes";
import { type BegunRun, checkBytes, checkHistory, nameOf, RunLog, refusalOf } from "@holdfast/recipes/internal";
import { type Holdfast, type Lease, PausedError } from "holdfast";
import { checkKnown, checkWhole, delay, internalsOf, type Session } from "holdfast/internal";

/** Options of `runCoordinator`. */
export interface RunCoordinatorOptions {
  /**
   * The name of the coordinator, under which its fires and its history are stored. A semaphore with this name has one
   * permit in use for each current run. Services whose tasks have the same names need different coordinator names. 1 to
   * 255 bytes.
   * @default "node-cron"
   */
  readonly name?: string | undefined;

  /**
   * The longest random delay before this instance asks to run a fire, so that the same host does not run every fire.
   * The delay never exceeds half of the `distributedLease` of the task. Whole milliseconds, 0 to 3,600,000.
   * @default 0
   */
  readonly jitterMaxMs?: number | undefined;

  /**
   * Whether to record runs and refusals in the history of `name`, for `readHistory` and `holdfast history`. A refusal
   * because another instance runs the fire is not recorded: for each fire, all instances but one get it.
   * @default false
   */
  readonly history?: boolean | undefined;
}

/** A run coordinator for `setRunCoordinator` of node-cron 4.4 or later. Its functions never reject. */
export interface RedisRunCoordinator {
  /**
   * Decides whether this instance runs a fire.
   *
   * @param key    identifies the task and the time of the fire; Holdfast does not parse it
   * @param ttlMs  how long the server remembers that the fire is taken, in milliseconds. Must exceed the largest clock
   *               difference between two hosts
   * @returns true for the first instance to ask, false for all others. Also false if the server does not reply or is in
   *          failover grace, while the semaphore `name` is paused, and after the Holdfast closes. The channel
   *          `holdfast:run:skipped` has the reason
   */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  /** Records that the run of a fire has ended here. The fire stays taken. @param key  the key given to `shouldRun` */
  onComplete(key: string): Promise<void>;
  /** The number of runs and refusals in this process. */
  readonly counts: RunCounts;
}

/** A capacity that is never reached. One semaphore counts all runs of a coordinator. */
const PERMITS = 1_000_000;
const LIVING_LEASE_MS = 15_000;
const LONGEST_NAME_BYTES = 512;
const LONGEST_LABEL_BYTES = 256;
const SHORTEST_MS = 100;
const YEAR_MS = 31_536_000_000;

/**
 * Creates a coordinator for `setRunCoordinator`, or for the option `runCoordinator` of one task.
 *
 * Of all instances that ask for a key within `ttlMs` of the first, exactly one gets true, as long as the server loses
 * no data. **The run of the fire is not guaranteed to complete**, because that instance may crash.
 *
 * @param holdfast  a Holdfast on one server, behind Sentinel or on a cluster
 * @throws TypeError, RangeError  invalid option
 * @throws UnsupportedError       the Holdfast uses several independent servers
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
  /** The permit of the run. Undefined if it could not be acquired; this instance runs the fire anyway. */
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
      // The key can be granted again after `ttlMs`. From then on it identifies the new run, so end an older one now.
      await this.onComplete(key);
      const living = await this.#live(key);
      const { owner, token } = living ?? marker;
      const run: Running = { tick: key, owner, token, living, beganAtMs: this.#session.runtime.monotonicMs() };
      this.#running.set(key, run);
      this.#log.started(run);
      return true;
    } catch (error) {
      // node-cron must never see an error, not even one that is not a refusal.
      const refusal: Refusal = refusalOf(error) ?? { outcome: "refused", reason: "unavailable", ...asError(error) };
      // The marker is never released, so a fire that is held stays taken.
      this.#log.skipped(String(key), refusal.reason === "held" ? { ...refusal, reason: "already-done" } : refusal);
      return false;
    }
  }

  async onComplete(key: string): Promise<void> {
    const run = this.#running.get(key);
    if (run === undefined) return;
    this.#running.delete(key);
    // If the release fails, the permit ends with its lease.
    await run.living?.release().catch(() => {});
    await this.#log.ended(run, "unreported", this.#session.runtime.monotonicMs() - run.beganAtMs);
  }

  /**
   * Acquires the marker for `leaseMs`.
   *
   * @throws AcquireTimeoutError  the fire is taken
   * @throws as `Mutex.acquire` otherwise
   */
  async #take(key: string, leaseMs: number): Promise<Pick<Lease, "owner" | "token">> {
    const wish = { leaseMs, renew: false, maxHoldMs: Infinity, waitMs: 0, throughPause: false };
    const marker = await this.#holdfast.mutex(this.#nameOf(key)).acquire(wish);
    const { owner, token } = marker;
    marker.export();
    return { owner, token };
  }

  /** Acquires the permit of a run. This also checks for a pause. @throws PausedError */
  async #live(key: string): Promise<Lease | undefined> {
    const label = Buffer.from(key)
      .subarray(0, LONGEST_LABEL_BYTES - 3)
      .toString();
    const wish = { leaseMs: LIVING_LEASE_MS, renew: true, maxHoldMs: Infinity, waitMs: 0, throughPause: false, label };
    try {
      return await this.#holdfast.semaphore(this.#name, { permits: PERMITS }).acquire(wish);
    } catch (error) {
      if (error instanceof PausedError) throw error;
      // This instance holds the marker, so no other instance runs the fire. Run it without a permit.
      return undefined;
    }
  }

  /** Returns a mutex name that is unique per coordinator and key. A digest replaces a name that would be too long. */
  #nameOf(key: string): string {
    const name = nameOf(this.#name, key);
    if (Buffer.byteLength(name) <= LONGEST_NAME_BYTES) return name;
    return `sha256:${createHash("sha256").update(name).digest("hex")}`;
  }
}

function asError(error: unknown): Pick<Refusal, "error"> {
  return error instanceof Error ? { error } : { error: new Error(String(error)) };
}
