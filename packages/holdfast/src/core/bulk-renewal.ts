/**
 * Renews many leases by few requests.
 *
 * Most processes hold a few leases, each of which is renewed by itself when a third of it is over. Where thousands are held,
 * a request, a timer and an answer for each of them cost more than half of a core for 100 000 leases of 30 s (docs/benchmarks.md). So the
 * watchdog, which comes by every lease once a second anyway, collects those that are due soon. What a request for
 * many cannot tell, each asks by itself: here nothing is ever lost.
 */
import { StoreError } from "./errors.js";
import type { Grant, LockProtocol } from "./protocol.js";
import { answerInMs } from "./renewal.js";
import type { Runtime } from "./runtime.js";
import { type Moment, now, validUntil } from "./validity.js";

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

/** See the file header. One for each Holdfast. */
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
