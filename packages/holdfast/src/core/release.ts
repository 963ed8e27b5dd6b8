/**
 * How a claim is given back: by its holder, by the cleanup of a wait that ended, and until the server has answered.
 */
import { asUncertain, StoreError } from "./errors.js";
import type { Ended } from "./lease.js";
import type { Claim, Grant, LockProtocol, WaitProtocol } from "./protocol.js";
import type { Timer } from "./runtime.js";
import type { Occupant, Session } from "./session.js";

// --- The end of a hold that its holder wants: what was held is given to the next one, whatever happens to the requests.

/** What is given back. */
export interface Given {
  readonly session: Session;
  readonly protocol: LockProtocol;
  readonly grant: Grant;
  /** The claim, with the longest lease that it was ever given. */
  readonly claim: Claim;
  /** Whether a request of the claim may still be under way, and is to be undone when it arrives. */
  readonly mayStillRun: () => boolean;
  /** Puts it back on a server that has lost it in a failover, if it is still good. @throws StoreError */
  readonly reclaim: () => Promise<boolean>;
}

const PAUSE_MS = 50;

/**
 * Gives back a lease that is still valid, so whoever comes next comes after the holder's work, however late the answers
 * are. Hence "not held" is a release and no loss if an earlier copy of the request may have run.
 *
 * @throws StoreError  no answer in time; it is tried further in the background until the lease is over anyway
 */
export async function giveBack({ session, protocol, grant, claim, mayStillRun, reclaim }: Given): Promise<Ended> {
  const { runtime, commandTimeoutMs } = session;
  const reconnects = session.commandReconnects;
  const stopAtMs = runtime.monotonicMs() + commandTimeoutMs * 2;
  for (let mayHaveRun = false, isPutBack = false; ; ) {
    try {
      const ended = await protocol.release(grant, commandTimeoutMs);
      // That it could be put back shows that nobody was granted in between.
      if (ended !== "released" && !mayHaveRun && !isPutBack && (await isReclaimed(reclaim))) {
        isPutBack = true;
        continue;
      }
      mayHaveRun ||= reconnects !== session.commandReconnects;
      // It would hold for nobody when it arrives.
      if (mayStillRun()) void cleanUp(session, protocol, claim, true, commandTimeoutMs);
      return mayHaveRun && ended !== "forgotten" ? "released" : ended;
    } catch (error) {
      mayHaveRun ||= error instanceof StoreError && error.mayHaveRun;
      if (!(error instanceof StoreError) || !error.transient || runtime.monotonicMs() >= stopAtMs) {
        void cleanUp(session, protocol, claim, true, commandTimeoutMs);
        throw error;
      }
      await new Promise<void>((resume) => runtime.startTimer(resume, PAUSE_MS, true));
    }
  }
}

/** Not knowing it is no: what the release said stands, and a request that puts it back late is undone by `mayStillRun`. */
async function isReclaimed(reclaim: () => Promise<boolean>): Promise<boolean> {
  try {
    return await reclaim();
  } catch (error) {
    if (error instanceof StoreError) return false;
    throw error;
  }
}

/**
 * Gives back a lease that is over by this process's clocks. Who is late may have been followed by others, and may even
 * hold again, by a late copy of its own request: only the token tells, and extending compares it.
 *
 * @throws StoreError  as `giveBack`
 */
export async function giveBackLate({ session, protocol, grant, claim, mayStillRun }: Given): Promise<Ended> {
  const { commandTimeoutMs } = session;
  try {
    const outcome = await insist(session, () => protocol.extend(grant, grant.claim.leaseMs, commandTimeoutMs));
    return outcome === "extended" ? "released" : outcome;
  } finally {
    // Whatever it is that the server holds for this claim, nobody uses it any more.
    await cleanUp(session, protocol, claim, mayStillRun(), commandTimeoutMs);
  }
}

// --- Giving a claim up for good, although it may be unknown what the server has done for it.
//
// A request whose answer was lost may still be on its way, and may queue or even hold when it arrives. So as long as
// any is unaccounted for, `leave` is sent again until the lease that it could have begun is over; and while the server
// answers nothing at all, for a minute at least. A place in the queue that is left over after that is passed on by
// whoever is granted it in the name of this claim.

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

const INSIST_PAUSE_MS = 50;

/**
 * Sends a request until it is answered, for about two command time-outs; the request must count once however
 * often it is sent.
 *
 * @throws StoreError  it was not answered in that time, or never will be; `mayHaveRun` is true if any of the tries may have run
 */
export async function insist<Answer>(
  session: Pick<Session, "runtime" | "commandTimeoutMs">,
  send: () => Promise<Answer>,
): Promise<Answer> {
  const { runtime, commandTimeoutMs } = session;
  const stopAtMs = runtime.monotonicMs() + commandTimeoutMs * 2;
  for (let mayHaveRun = false; ; ) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      mayHaveRun ||= error.mayHaveRun;
      if (!error.transient || runtime.monotonicMs() >= stopAtMs)
        throw mayHaveRun ? asUncertain(error, error.lockName) : error;
      await new Promise<void>((resume) => runtime.startTimer(resume, INSIST_PAUSE_MS, true));
    }
  }
}
