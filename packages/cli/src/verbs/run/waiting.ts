/**
 * Acquires a lease, or finds out why there is none.
 *
 * The library implements the queue. This module adds what a command line needs: it continues to wait while Redis is
 * unreachable, tells a person at a terminal who holds the lock, and names the holder in every refusal.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { plain } from "@holdfast/console/text";
import { AcquireTimeoutError, type Lease, PausedError, QuorumError, StoreError } from "holdfast";
import { formatMs, sleep } from "../../frame/durations.js";
import type { RunPlan } from "./flags.js";
import type { ChosenLock } from "./lock-of.js";
import { heldMessage, holderJson, pausedMessage, ungrantedMessage } from "./messages.js";
import { Refusal } from "./refusal.js";
import type { Report } from "./report.js";

/** A lock, and the server's clock, because the times of holders and pauses are server times. */
export interface SoughtLock extends ChosenLock {
  serverNowMs(): Promise<number>;
}

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 2_000;
/** A failover grace may be cut short, so check again after at most this time. */
const LONGEST_GRACE_SLEEP_MS = 1_000;
/** After this time, a person at a terminal expects a message. */
const NOTICE_AFTER_MS = 2_000;

/** A lease, and whether the run had to wait for it. */
export interface Obtained {
  readonly lease: Lease;
  /** False if the first request was granted quickly, which does not count as a wait. */
  readonly hasWaited: boolean;
}

/**
 * Acquires the lock, and waits for it as long as the plan allows.
 *
 * @param signal  ends the wait immediately; then this rejects with its reason, and nothing is held
 * @throws Refusal     busy, wait over, paused, or failover grace; nothing is held
 * @throws StoreError  Redis was unreachable until the wait was over, or refused the request
 */
export async function obtain(
  chosen: SoughtLock,
  plan: RunPlan,
  report: Report,
  signal: AbortSignal,
): Promise<Obtained> {
  const notice = new WaitNotice(chosen, report);
  try {
    const lease = await attempts(chosen, plan, report, signal, (isReported) => notice.begin(isReported));
    return { lease, hasWaited: notice.hasBegun };
  } finally {
    notice.close();
  }
}

async function attempts(
  chosen: SoughtLock,
  plan: RunPlan,
  report: Report,
  signal: AbortSignal,
  onWait: (isReported: boolean) => void,
): Promise<Lease> {
  const startedAtMs = performance.now();
  const leftMs = (): number => Math.max(0, plan.waitMs - (performance.now() - startedAtMs));
  for (let pauseMs = FIRST_RETRY_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_RETRY_MS)) {
    try {
      return await attempt(chosen, plan, leftMs(), signal);
    } catch (error) {
      signal.throwIfAborted();
      const resumesInMs = error instanceof StoreError ? error.resumesInMs : undefined;
      const mayPass = error instanceof StoreError && error.transient && plan.waitMs > 0 && leftMs() > 0;
      onWait(mayPass);
      if (!mayPass) return await verdict(chosen, plan, error, signal);
      report.detail(`${plain(plan.name)}: ${error.message} Trying again.`);
      const restMs = resumesInMs === undefined ? pauseMs : Math.min(resumesInMs, LONGEST_GRACE_SLEEP_MS);
      await sleep(Math.min(leftMs(), restMs), signal);
      signal.throwIfAborted();
    }
  }
}

async function attempt(chosen: SoughtLock, plan: RunPlan, waitMs: number, signal: AbortSignal): Promise<Lease> {
  const { lock } = chosen;
  const { label, leaseMs, maxHoldMs, times, throughPause } = plan;
  const options = {
    leaseMs,
    ...(label === undefined ? {} : { label }),
    // A fallback: the child is ended earlier, but if that fails, the lease must not be renewed forever.
    ...(maxHoldMs === undefined ? {} : { maxHoldMs: Math.ceil(maxHoldMs + times.killAfterMs + leaseMs) }),
    ...(throughPause ? { throughPause } : {}),
  };
  if (plan.waitMs > 0) return await lock.acquire({ ...options, waitMs, signal, fairness: "strict" });
  const lease = await lock.tryAcquire(options);
  if (lease === null) throw await busy(chosen);
  if (!signal.aborted) return lease;
  await lease.release().catch(() => {});
  throw signal.reason;
}

async function busy({ lock, serverNowMs }: SoughtLock): Promise<Refusal> {
  // By now the lock may be free or Redis unreachable. The result is still a refusal.
  const [seen, nowMs] = await Promise.all([lock.inspect().catch(() => undefined), serverNowMs()]);
  const holder = seen?.holders[0];
  if (seen?.pause !== undefined) return new Refusal("paused", pausedMessage(lock.name, seen.pause, nowMs), { holder });
  return new Refusal("busy", heldMessage(lock.name, holder, nowMs), { holder });
}

/**
 * Finds the result of a wait that ended without a lease.
 *
 * @returns a lease after all, if the lock is free now
 */
async function verdict(chosen: SoughtLock, plan: RunPlan, error: unknown, signal: AbortSignal): Promise<Lease> {
  const { name, waitMs } = plan;
  const { serverNowMs } = chosen;
  if (error instanceof StoreError && error.resumesInMs !== undefined) {
    throw grace(name, error.resumesInMs, await serverNowMs());
  }
  if (error instanceof PausedError) throw new Refusal("paused", pausedMessage(name, error, await serverNowMs()));
  if (!(error instanceof AcquireTimeoutError)) throw error;
  // The server did not even report the holder, so the result is "unreachable" and not "busy".
  if (error.cause instanceof StoreError) throw error.cause;
  const { holder, pause } = error;
  const waited = `waited ${formatMs(waitMs)}`;
  if (pause !== undefined) {
    throw new Refusal("paused", `${waited}: ${pausedMessage(name, pause, await serverNowMs())}`);
  }
  if (holder !== undefined) {
    throw new Refusal("timeout", `${waited}: ${heldMessage(name, holder, await serverNowMs())}`, { holder });
  }
  try {
    // The lock has no holder but was not granted. Either it became free just now, or the server currently grants
    // nothing.
    return await attempt(chosen, { ...plan, waitMs: 0 }, 0, signal);
  } catch (last) {
    if (last instanceof StoreError && last.resumesInMs !== undefined) {
      throw grace(name, last.resumesInMs, await serverNowMs());
    }
    throw last instanceof Refusal ? new Refusal("timeout", last.message, { holder: last.holder }) : last;
  }
}

function grace(name: string, resumesInMs: number, nowMs: number): Refusal {
  const resumesAtMs = nowMs + resumesInMs;
  const at = new Date(resumesAtMs).toISOString().slice(11, 19);
  return new Refusal(
    "grace",
    `${plain(name)} is not granted until ${at}Z (in ${formatMs(resumesInMs)}): this Redis was restarted or took over from another, and may not know every held lock`,
    { resumesAtMs },
  );
}

/**
 * Reports the holder once: to programs when the wait starts, and to people after `NOTICE_AFTER_MS`. Checks only then
 * whether anyone reads the report, because the check opens stderr, and a quick grant needs no report.
 */
class WaitNotice {
  readonly #chosen: SoughtLock;
  readonly #report: Report;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #onWait = (): void => this.begin();
  #isOver = false;
  #hasBegun = false;

  constructor(chosen: SoughtLock, report: Report) {
    this.#chosen = chosen;
    this.#report = report;
    this.#timers = [
      ...(chosen.isForeign ? [setTimeout(this.#onWait, FIRST_RETRY_MS)] : []),
      setTimeout(() => {
        this.begin();
        void this.#showNotice();
      }, NOTICE_AFTER_MS),
    ];
    subscribe("holdfast:wait", this.#onWait);
  }

  /** Whether the run waits. Locks in other formats do not publish waits, so for them every request counts as a wait. */
  get hasBegun(): boolean {
    return this.#hasBegun || this.#chosen.isForeign;
  }

  /**
   * Records that the run has to wait, because the lock is not granted or the reply takes long. Reports that once.
   *
   * @param isReported  false if the run is about to give up, so that there is no wait to report
   */
  begin(isReported = true): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    if (isReported && this.#report.isTalkative) void this.#sendEvent();
  }

  close(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    unsubscribe("holdfast:wait", this.#onWait);
  }

  async #sendEvent(): Promise<void> {
    const seen = await this.#chosen.lock.inspect().catch(() => undefined);
    if (!this.#isOver) {
      this.#report.event("waiting", { holder: holderJson(seen?.holders[0]), waiters: seen?.waiterCount ?? null });
    }
  }

  async #showNotice(): Promise<void> {
    if (!this.#report.isTalkative) return;
    let isUndecided = false;
    const looking = this.#chosen.lock.inspect().catch((error: unknown) => {
      // At least one server reports a holder, but too few servers answer to tell whether the Redlock is held.
      isUndecided = error instanceof QuorumError && error.answers.some(({ answer }) => answer === "held");
      return undefined;
    });
    const [seen, nowMs] = await Promise.all([looking, this.#chosen.serverNowMs()]);
    if (this.#isOver) return;
    const { kind, lock } = this.#chosen;
    const { name } = lock;
    if (isUndecided) this.#report.say(`waiting for ${plain(name)}, which may be held: some servers do not reply`);
    else if (seen === undefined) this.#report.say(`waiting for ${plain(name)}: Redis does not reply`);
    else if (seen.pause !== undefined) this.#report.say(`waiting: ${pausedMessage(name, seen.pause, nowMs)}`);
    else if (seen.holders.length === 0) this.#report.say(ungrantedMessage(name, kind));
    else this.#report.say(`waiting: ${heldMessage(name, seen.holders[0], nowMs)}${ahead(seen.waiterCount)}`);
  }
}

/** The count includes this run, so 1 means that no other client waits. */
function ahead(waiterCount: number): string {
  return waiterCount > 1 ? `; ${waiterCount} clients are waiting, including this one` : "";
}
