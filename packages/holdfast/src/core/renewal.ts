/** When a lease is renewed next: every third of it; and after a renewal that failed soon again, with growing pauses. */
import { aboutLock, channels, type RenewEvent } from "./events.js";
import type { InspectProtocol } from "./protocol.js";
import type { Runtime } from "./runtime.js";

const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 1_000;

/** How long to wait for an answer: with the pause after a failure, short enough for three tries before the lease is over. */
export function answerInMs(leaseMs: number, commandTimeoutMs: number): number {
  return Math.min(commandTimeoutMs, leaseMs / 6);
}

/** See the file header. Has no timer of its own. */
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
