/** How long a hold may be trusted, and what the server was asked for. Validity is computed from the clocks at the call. */
import type { Runtime } from "./runtime.js";
import { later, type Moment, msFrom, now, validUntil } from "./validity.js";

/** See the file header. One for each hold. */
export class Term {
  /** Time of the grant by the wall clock, in ms since 1970. */
  readonly sinceAtMs: number;
  /** Length of the lease that a renewal asks for, in ms. */
  leaseMs: number;
  readonly #runtime: Runtime;
  readonly #sinceMs: number;
  #validUntil: Moment;
  #longestMs = 0;

  /**
   * @param setAt      the earliest moment at which the server can have begun it
   * @param grantedMs  how long the server has granted it for; as long as renewals ask for, unless it is provisional
   */
  constructor(runtime: Runtime, setAt: Moment, leaseMs: number, grantedMs: number = leaseMs) {
    this.#runtime = runtime;
    this.leaseMs = leaseMs;
    this.sinceAtMs = runtime.wallMs();
    this.#sinceMs = runtime.monotonicMs();
    this.#validUntil = validUntil(setAt, grantedMs);
  }

  /** The longest lease that the server was asked for since the grant; 0 if nothing was asked. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** What is left of it, in ms; 0 when it is over. */
  leftMs(at: Moment = now(this.#runtime)): number {
    return msFrom(at, this.#validUntil);
  }

  /** How long it has lasted, in ms. */
  heldMs(nowMs: number = this.#runtime.monotonicMs()): number {
    return nowMs - this.#sinceMs;
  }

  /** The server is asked for more. */
  asked(leaseMs: number): void {
    this.#longestMs = Math.max(this.#longestMs, leaseMs);
  }

  /** It said yes, at `at`, to a request by which the lease may be trusted until `until`. */
  extended(until: Moment, at: Moment): void {
    this.#validUntil = later(this.#validUntil, until, at);
  }
}
