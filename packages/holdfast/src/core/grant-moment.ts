/** When a claim can have been granted at the earliest, from what its waiter knows of the server's clock. */
import type { Runtime } from "./runtime.js";
import { type ClockSample, earliestGrant, type Moment, msUntil, now, validUntil } from "./validity.js";

/** See the file header. One for each claim on its way. */
export class GrantMoment {
  readonly #runtime: Runtime;
  #sample: ClockSample | undefined;
  #firstSentAt: Moment | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Whether the server has said that the claim waits. */
  get isKnownToWait(): boolean {
    return this.#sample !== undefined;
  }

  /** A request is sent now. */
  sent(): Moment {
    const sentAt = now(this.#runtime);
    this.#firstSentAt ??= sentAt;
    return sentAt;
  }

  /** It was answered that the claim waits, when the server's clock said `serverUs`. */
  waits(sentAt: Moment, serverUs: number): void {
    this.#sample = { sentAt, serverUs };
  }

  /**
   * The moment of a grant whose message has come, made at `grantedAtUs` of the server's clock; undefined if the server had
   * better be asked: the grant is older than an answer "you wait", so it is over, or its lease has half run out.
   */
  of(grantedAtUs: number, leaseMs: number): Moment | undefined {
    const receivedAt = now(this.#runtime);
    if (this.#sample !== undefined && grantedAtUs < this.#sample.serverUs) return undefined;
    const setAt =
      this.#sample === undefined
        ? (this.#firstSentAt ?? receivedAt)
        : earliestGrant(this.#sample, grantedAtUs, receivedAt);
    return msUntil(validUntil(setAt, leaseMs), this.#runtime) < leaseMs / 2 ? undefined : setAt;
  }
}
