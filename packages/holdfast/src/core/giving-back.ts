/** The end of a hold that its holder wants: what was held is given to the next one, whatever happens to the requests. */
import { cleanUp } from "./cleanup.js";
import { StoreError } from "./errors.js";
import type { Ended } from "./holding.js";
import { insist } from "./insist.js";
import type { Claim, Grant, LockProtocol } from "./protocol.js";
import type { Session } from "./session.js";

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
