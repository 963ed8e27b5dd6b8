/**
 * When a lease is renewed, and the renewal of many leases by one request.
 */

import { StoreError } from "./errors.js";
import { aboutLock, channels, type RenewEvent } from "./events.js";
import type { Grant, InspectProtocol, LockProtocol } from "./protocol.js";
import type { Runtime } from "./runtime.js";
import { type Moment, now, validUntil } from "./time.js";

const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 1_000;

/** How long to wait for an answer: with the pause after a failure, short enough for three tries before the lease is over. */
export function answerInMs(leaseMs: number, commandTimeoutMs: number): number {
  return Math.min(commandTimeoutMs, leaseMs / 6);
}

/**
 * When a lease is renewed next: every third of it; and after a renewal that failed soon again, with growing pauses.
 *
 * Has no timer of its own.
 */
export class RenewalSchedule {
  readonly #runtime: Runtime;
  #nextAtMs: number;
  #retryMs = RETRY_MIN_MS;
  #isUnderWay = false;
  /** A reason came while one was under way, which may have been answered before it. */
  #isDueAgain = false;

  /** @param firstAtMs  on the monotonic clock; Infinity for a lease that is not renewed */
  constructor(runtime: Runtime, firstAtMs: number) {
    this.#runtime = runtime;
    this.#nextAtMs = firstAtMs;
  }

  /** How long until the next one is to be sent, in ms; 0 or less if it is now, Infinity while one is under way. */
  dueInMs(nowMs: number = this.#runtime.monotonicMs()): number {
    return this.#isUnderWay ? Infinity : this.#nextAtMs - nowMs;
  }

  /** One is under way, until `settled`. */
  begun(): void {
    this.#isUnderWay = true;
  }

  /** It has ended, however. */
  settled(): void {
    this.#isUnderWay = false;
  }

  /** The lease has begun anew. */
  succeeded(leaseMs: number, nowMs?: number): void {
    this.#retryMs = RETRY_MIN_MS;
    this.restart(leaseMs, nowMs);
  }

  /** Nobody knows; short enough for three tries before the lease is over, however short it is. */
  failed(leaseMs: number): void {
    this.#nextAtMs = this.#runtime.monotonicMs() + Math.min(this.#retryMs, leaseMs / 12);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
  }

  /** The caller has begun the lease anew, now and with this length. */
  restart(leaseMs: number, nowMs: number = this.#runtime.monotonicMs()): void {
    this.#nextAtMs = this.#isDueAgain ? nowMs : nowMs + leaseMs / 3;
    this.#isDueAgain = false;
  }

  /**
   * The connection is back: the next one is due at once, if the last one failed or `isUrgent`.
   *
   * @returns whether it is
   */
  renewNow(isUrgent: boolean): boolean {
    if (this.#retryMs === RETRY_MIN_MS && !isUrgent) return false;
    this.#isDueAgain = this.#isUnderWay;
    this.#nextAtMs = 0;
    return true;
  }
}

/** Tells whoever watches how a renewal ended. */
export function publishRenew(
  protocol: InspectProtocol,
  { owner, token }: { readonly owner: string; readonly token: number },
  failure: unknown,
  validForMs: () => number,
): void {
  if (!channels.renew.hasSubscribers) return;
  const event: RenewEvent = {
    ...aboutLock(protocol, owner),
    token,
    error: failure === undefined ? undefined : failure instanceof Error ? failure : new Error(String(failure)),
    validForMs: validForMs(),
  };
  channels.renew.publish(event);
}

/** Leases of one request: few enough that nobody else waits long for the server. */
const MOST = 128;
/** Requests at a time, so that what others send comes in between; more where so many wait that it would take too long. */
const AT_A_TIME = 4;
/** In so many round trips all are through that wait; who has waited for too long by then, since each is slow, asks by itself. */
const ROUND_TRIPS = 8;

/** A lease whose renewal is due. */
export interface Renewable {
  /** Undefined if nobody wants it any more. */
  readonly renewed: { readonly protocol: LockProtocol; readonly grant: Grant; readonly leaseMs: number } | undefined;
  /** It has begun anew, as was answered at `at`, and may be trusted until `until`. */
  extended(until: Moment, at: Moment): void;
  /** It was refused, or nobody knows: it has to ask by itself. */
  open(): void;
}

/**
 * Renews many leases by few requests.
 *
 * Most processes hold a few leases, each of which is renewed by itself when a third of it is over. Where thousands are held,
 * a request, a timer and an answer for each of them cost more than half of a core for 100,000 leases of 30 s (docs/benchmarks.md). So the
 * watchdog, which comes by every lease once a second anyway, collects those that are due soon. What a request for
 * many cannot tell, each asks by itself: here nothing is ever lost.
 *
 * One for each Holdfast.
 */
export class BulkRenewal {
  readonly #runtime: Runtime;
  readonly #timeoutMs: number;
  #waiting: Renewable[] = [];
  /** When each of them has waited for a sixth of its lease, so that there is time for two tries of its own; on the monotonic clock. */
  #lateAtMs: number[] = [];
  /** None of them is late before that, so that nobody has to look: tens of thousands may wait. */
  #firstLateAtMs = Infinity;
  #underWay = 0;
  #atATime = AT_A_TIME;
  #isPlanned = false;
  #isRefused = false;

  /** @param timeoutMs  longest wait for one answer */
  constructor(runtime: Runtime, timeoutMs: number) {
    this.#runtime = runtime;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether the server runs requests for many: a proxy may refuse keys that a script computes. */
  get isPossible(): boolean {
    return !this.#isRefused;
  }

  /** Renews it with others that are added in this turn. */
  add(lease: Renewable): void {
    this.#waiting.push(lease);
    const lateAtMs = this.#runtime.monotonicMs() + (lease.renewed?.leaseMs ?? 0) / 6;
    this.#lateAtMs.push(lateAtMs);
    this.#firstLateAtMs = Math.min(this.#firstLateAtMs, lateAtMs);
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      this.#send();
    });
  }

  #send(): void {
    this.#openLate();
    this.#atATime = Math.max(this.#atATime, Math.ceil(this.#waiting.length / MOST / ROUND_TRIPS));
    while (this.#underWay < this.#atATime && this.#waiting.length > 0) {
      this.#underWay += 1;
      void this.#renew(this.#take(MOST)).then(() => {
        this.#underWay -= 1;
        this.#send();
      });
    }
    if (this.#waiting.length === 0) this.#atATime = AT_A_TIME;
  }

  #openLate(): void {
    const nowMs = this.#runtime.monotonicMs();
    if (nowMs < this.#firstLateAtMs) return;
    const isLate = this.#lateAtMs.map((lateAtMs) => lateAtMs <= nowMs);
    const late = this.#waiting.filter((_, i) => isLate[i]);
    this.#waiting = this.#waiting.filter((_, i) => !isLate[i]);
    this.#lateAtMs = this.#lateAtMs.filter((lateAtMs) => lateAtMs > nowMs);
    this.#firstLateAtMs = this.#lateAtMs.reduce((first, lateAtMs) => Math.min(first, lateAtMs), Infinity);
    for (const lease of late) lease.open();
  }

  /** The first so many of those that wait, who wait no more. */
  #take(count: number): Renewable[] {
    this.#lateAtMs.splice(0, count);
    return this.#waiting.splice(0, count);
  }

  async #renew(leases: readonly Renewable[]): Promise<void> {
    const wanted: Renewable[] = [];
    const asked: NonNullable<Renewable["renewed"]>[] = [];
    let shortestMs = Infinity;
    for (const lease of leases) {
      const { renewed } = lease;
      if (renewed === undefined) continue;
      wanted.push(lease);
      asked.push(renewed);
      shortestMs = Math.min(shortestMs, renewed.leaseMs);
    }
    const renewAll = asked[0]?.protocol.renewAll;
    if (renewAll === undefined) {
      for (const lease of wanted) lease.open();
      return;
    }
    const sentAt = now(this.#runtime);
    try {
      const refused = new Set(await renewAll(asked, answerInMs(shortestMs, this.#timeoutMs)));
      // The clocks are read once for all, and those of one length share one object: a tenth of what each of them takes.
      const at = now(this.#runtime);
      const untilOf = new Map<number, Moment>();
      wanted.forEach((lease, place) => {
        const leaseMs = asked[place]?.leaseMs ?? 0;
        const until = untilOf.get(leaseMs) ?? validUntil(sentAt, leaseMs);
        untilOf.set(leaseMs, until);
        if (refused.has(place)) lease.open();
        else lease.extended(until, at);
      });
    } catch (error) {
      this.#isRefused ||= !(error instanceof StoreError) || !error.transient;
      // Those that wait would find the same, each after a deadline.
      const rest = this.#take(this.#waiting.length);
      for (const lease of [...leases, ...rest]) lease.open();
    }
  }
}
