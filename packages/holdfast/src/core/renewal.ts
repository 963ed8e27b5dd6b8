/**
 * Schedules renewals, and renews many leases with one request.
 */

import { StoreError } from "./errors.js";
import { aboutLock, channels, type RenewEvent } from "./events.js";
import type { Grant, InspectProtocol, LockProtocol } from "./protocol.js";
import type { Runtime } from "./runtime.js";
import { type Moment, now, validUntil } from "./time.js";

const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 1_000;

/**
 * Returns how long to wait for the reply to a renewal, in ms. Together with the delay after a failure, this timeout
 * leaves time for three attempts before the lease is over.
 */
export function answerInMs(leaseMs: number, commandTimeoutMs: number): number {
  return Math.min(commandTimeoutMs, leaseMs / 6);
}

/**
 * Schedules the renewals of one lease: after a third of its length, or soon after a failure, with growing delays. It
 * has no timer; `dueInMs` says when the next renewal is due.
 */
export class RenewalSchedule {
  readonly #runtime: Runtime;
  #nextAtMs: number;
  #retryMs = RETRY_MIN_MS;
  #isUnderWay = false;
  /**
   * Whether a renewal was requested while another was under way. The server may have answered the earlier one
   * before the reason for the later one arose, so the later one must still be sent.
   */
  #isDueAgain = false;

  /**
   * @param firstAtMs  time of the first renewal on the monotonic clock, in ms; Infinity for a lease that is not renewed
   */
  constructor(runtime: Runtime, firstAtMs: number) {
    this.#runtime = runtime;
    this.#nextAtMs = firstAtMs;
  }

  /** Returns the time until the next renewal, in ms: 0 or less if it is due, Infinity while one is under way. */
  dueInMs(nowMs: number = this.#runtime.monotonicMs()): number {
    return this.#isUnderWay ? Infinity : this.#nextAtMs - nowMs;
  }

  /** Records that a renewal is under way, until `settled` is called. */
  begun(): void {
    this.#isUnderWay = true;
  }

  /** Records that the renewal has ended, whatever its outcome. */
  settled(): void {
    this.#isUnderWay = false;
  }

  /** Records that the server has renewed the lease. */
  succeeded(leaseMs: number, nowMs?: number): void {
    this.#retryMs = RETRY_MIN_MS;
    this.restart(leaseMs, nowMs);
  }

  /**
   * Records that the outcome of a renewal is unknown. The delay to the next one leaves time for three attempts before
   * the lease is over.
   */
  failed(leaseMs: number): void {
    this.#nextAtMs = this.#runtime.monotonicMs() + Math.min(this.#retryMs, leaseMs / 12);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
  }

  /** Restarts the schedule for a lease of this length that begins now. */
  restart(leaseMs: number, nowMs: number = this.#runtime.monotonicMs()): void {
    this.#nextAtMs = this.#isDueAgain ? nowMs : nowMs + leaseMs / 3;
    this.#isDueAgain = false;
  }

  /**
   * Makes the next renewal due immediately if the last one failed or `isUrgent` is true. Called after a reconnect, for
   * example.
   *
   * @returns whether it was made due
   */
  renewNow(isUrgent: boolean): boolean {
    if (this.#retryMs === RETRY_MIN_MS && !isUrgent) return false;
    this.#isDueAgain = this.#isUnderWay;
    this.#nextAtMs = 0;
    return true;
  }
}

/** Publishes how a renewal ended. @param failure  the error; undefined if the server replied */
export function publishRenew(
  protocol: InspectProtocol,
  hold: { readonly owner: string; readonly token: number; validForMs(): number },
  failure?: unknown,
): void {
  if (!channels.renew.hasSubscribers) return;
  const event: RenewEvent = {
    ...aboutLock(protocol, hold.owner),
    token: hold.token,
    error: failure === undefined ? undefined : failure instanceof Error ? failure : new Error(String(failure)),
    validForMs: hold.validForMs(),
  };
  channels.renew.publish(event);
}

/** Maximum number of leases per request. The limit keeps other clients from waiting long for the server. */
const MOST = 128;
/**
 * Number of concurrent requests. The limit leaves room for other requests in between. More are allowed if so many
 * leases are waiting that the renewals would take too long.
 */
const AT_A_TIME = 4;
/**
 * Number of round trips within which all waiting leases should be renewed. If round trips are so slow that a lease
 * waits too long, it is renewed by its own request.
 */
const ROUND_TRIPS = 8;

/** A lease whose renewal is due. */
export interface Renewable {
  readonly protocol: LockProtocol;
  readonly grant: Grant;
  /** Length of the renewed lease, in ms. */
  readonly leaseMs: number;
  /** Whether the lease is still needed. False once its hold has ended. */
  readonly isNeeded: boolean;
  /**
   * Called when the server has renewed the lease. The reply arrived at `at`, and the holder may rely on the lease until
   * `until`.
   */
  extended(until: Moment, at: Moment): void;
  /**
   * Called if the renewal was refused or not sent, or its outcome is unknown. The lease must be renewed by its own
   * request.
   */
  open(): void;
}

/** Leases that wait for the same request. */
interface Batch {
  readonly leases: Renewable[];
  /**
   * Time on the monotonic clock at which the first of the leases has waited for a sixth of its length. After that, each
   * lease is renewed by its own request, and there is still time for two attempts.
   */
  lateAtMs: number;
}

/**
 * Renews many leases with few requests.
 *
 * Most processes hold a few leases, and renew each with its own request when a third of its length has passed. With
 * thousands of leases that is expensive: for 100,000 leases of 30 s, a request, a timer and a reply per lease use more
 * than half a core (bench/docs/benchmarks.md). So the watchdog, which runs once a second anyway, collects the leases
 * that are due soon. A lease that the bulk request does not renew is renewed by its own request. So this class never
 * declares a lease lost.
 *
 * Each session has one instance.
 */
export class BulkRenewal {
  readonly #runtime: Runtime;
  readonly #timeoutMs: number;
  /** Full batches, followed by one that more leases can join. */
  #waiting: Batch[] = [];
  #underWay = 0;
  #atATime = AT_A_TIME;
  #isPlanned = false;
  #isRefused = false;

  /** @param timeoutMs  timeout of one request, in ms */
  constructor(runtime: Runtime, timeoutMs: number) {
    this.#runtime = runtime;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether the server accepts bulk renewals. A proxy may refuse keys that a script computes. */
  get isPossible(): boolean {
    return !this.#isRefused;
  }

  /**
   * Renews the lease together with others that are added in this turn.
   *
   * @param nowMs  the current monotonic time, in ms
   */
  add(lease: Renewable, nowMs: number): void {
    const lateAtMs = nowMs + lease.leaseMs / 6;
    const last = this.#waiting.at(-1);
    if (last === undefined || last.leases.length === MOST) {
      this.#waiting.push({ leases: [lease], lateAtMs });
    } else {
      last.leases.push(lease);
      last.lateAtMs = Math.min(last.lateAtMs, lateAtMs);
    }
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      this.#send();
    });
  }

  #send(): void {
    const nowMs = this.#runtime.monotonicMs();
    const late = this.#waiting.filter(({ lateAtMs }) => lateAtMs <= nowMs);
    if (late.length > 0) this.#waiting = this.#waiting.filter((batch) => !late.includes(batch));
    for (const { leases } of late) for (const lease of leases) lease.open();
    this.#atATime = Math.max(this.#atATime, Math.ceil(this.#waiting.length / ROUND_TRIPS));
    while (this.#underWay < this.#atATime) {
      const batch = this.#waiting.shift();
      if (batch === undefined) break;
      this.#underWay += 1;
      void this.#renew(batch.leases).then(() => {
        this.#underWay -= 1;
        this.#send();
      });
    }
    if (this.#waiting.length === 0) this.#atATime = AT_A_TIME;
  }

  async #renew(leases: readonly Renewable[]): Promise<void> {
    const needed = leases.filter(({ isNeeded }) => isNeeded);
    const renewAll = needed[0]?.protocol.renewAll;
    if (renewAll === undefined) {
      for (const lease of needed) lease.open();
      return;
    }
    // Copies the lengths, because a holder may change one while the request is under way.
    const lengthsMs = needed.map(({ leaseMs }) => leaseMs);
    const sentAt = now(this.#runtime);
    try {
      const refused = new Set(await renewAll(needed, answerInMs(Math.min(...lengthsMs), this.#timeoutMs)));
      // Read the clocks once, and use one object for leases of equal length. That saves a tenth of the cost per lease.
      const at = now(this.#runtime);
      const untilOf = new Map<number, Moment>();
      needed.forEach((lease, place) => {
        const leaseMs = lengthsMs[place] ?? 0;
        const until = untilOf.get(leaseMs) ?? validUntil(sentAt, leaseMs);
        untilOf.set(leaseMs, until);
        if (refused.has(place)) lease.open();
        else lease.extended(until, at);
      });
    } catch (error) {
      this.#isRefused ||= !(error instanceof StoreError) || !error.transient;
      // Further bulk requests would fail in the same way, perhaps only after a timeout. So renew each lease separately.
      const rest = this.#waiting.splice(0);
      for (const batch of [leases, ...rest.map((each) => each.leases)]) for (const lease of batch) lease.open();
    }
  }
}
