/**
 * Giving a claim up for good, although it may be unknown what the server has done for it.
 *
 * A request whose answer was lost may still be on its way, and may queue or even hold when it arrives. So as long as
 * any is unaccounted for, `leave` is sent again until the lease that it could have begun is over; and while the server
 * answers nothing at all, for a minute at least. A place in the queue that is left over after that is passed on by
 * whoever is granted it in the name of this claim.
 */

import { StoreError } from "./errors.js";
import type { Claim, WaitProtocol } from "./protocol.js";
import type { Timer } from "./runtime.js";
import type { Occupant, Session } from "./session.js";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 10_000;
/** How long an unaccounted request can plausibly be under way. */
const STRAGGLER_MS = 60_000;

/**
 * Leaves the queue, or releases what was granted meanwhile.
 *
 * @param isUncertain  whether a request for this claim may still be under way
 * @param onRefused    told why the first try failed, if another one would not fare better
 * @returns whether the first try was answered; clean-up goes on by itself. Never rejects.
 */
export function cleanUp(
  session: Session,
  protocol: WaitProtocol,
  claim: Claim,
  isUncertain: boolean,
  timeoutMs: number,
  onRefused: (error: unknown) => void = () => {},
): Promise<boolean> {
  return new Cleanup(session, protocol, claim, isUncertain).leave(timeoutMs, onRefused);
}

class Cleanup implements Occupant {
  /** It goes on by itself while a Holdfast that closes waits for others. */
  readonly waits = false;
  readonly #session: Session;
  readonly #protocol: WaitProtocol;
  readonly #claim: Claim;
  readonly #startedAtMs: number;
  #isUncertain: boolean;
  #isAnswered = false;
  /** The server will go on refusing, as with a key of another type: the rest is left to the lease. */
  #isHopeless = false;
  #isOver = false;
  /** Whether it was asked since this Holdfast began to close: once more is not worth a deadline. */
  #isLast = false;
  #pauseMs = FIRST_PAUSE_MS;
  #pause: Timer | undefined;

  constructor(session: Session, protocol: WaitProtocol, claim: Claim, isUncertain: boolean) {
    this.#session = session;
    this.#protocol = protocol;
    this.#claim = claim;
    this.#isUncertain = isUncertain;
    this.#startedAtMs = session.runtime.monotonicMs();
    session.admit(claim, this);
  }

  get #lock(): string {
    return this.#protocol.key ?? this.#protocol.name;
  }

  async leave(timeoutMs: number, onRefused: (error: unknown) => void = () => {}): Promise<boolean> {
    this.#pause?.cancel();
    this.#isLast ||= this.#session.isClosing;
    let isAnswered = true;
    try {
      await this.#session.cleanups.send(this.#lock, () => this.#protocol.leave(this.#claim, timeoutMs));
      this.#isAnswered = true;
    } catch (error) {
      // Not answered is not "no": the claim may still stand in the queue, or hold.
      isAnswered = false;
      this.#isUncertain = true;
      this.#isHopeless = error instanceof StoreError && !error.transient;
      if (this.#isHopeless) onRefused(error);
    }
    this.#goOn();
    return isAnswered;
  }

  /** A grant to nobody: pass it on. */
  granted(): void {
    if (!this.#isOver) void this.leave(this.#session.commandTimeoutMs);
  }

  recheck(): void {}

  revoked(): void {}

  reconnected(): void {
    if (this.#isUncertain && !this.#isOver) void this.leave(this.#session.commandTimeoutMs);
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    if (!this.#isLast) await this.leave(this.#session.commandTimeoutMs);
    this.#end();
  }

  #goOn(): void {
    if (this.#isOver) return;
    const passedMs = this.#session.runtime.monotonicMs() - this.#startedAtMs;
    const { leaseMs } = this.#claim;
    // Who was never answered may still stand in the queue, and what stands there has no lease that ends.
    const isSettled = this.#isAnswered || this.#isHopeless;
    const enoughMs =
      isSettled && this.#protocol.keepsPlaces !== true
        ? Math.min(leaseMs, STRAGGLER_MS)
        : Math.max(leaseMs, STRAGGLER_MS);
    if ((this.#isAnswered && !this.#isUncertain) || passedMs >= enoughMs) {
      this.#end();
      return;
    }
    this.#pause?.cancel();
    this.#pause = this.#session.runtime.startTimer(
      () => void this.leave(this.#session.commandTimeoutMs),
      this.#pauseMs,
      false,
    );
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }

  #end(): void {
    this.#isOver = true;
    this.#pause?.cancel();
    this.#session.dismiss(this.#claim, this);
  }
}
