/**
 * The pause of a waiter between two attempts. It ends when the leases that block the waiter must have ended, or when a
 * message reports that they have.
 *
 * Waiters that get the same message would split the votes, and their cleanups would wake each other again. So they all
 * ask one server first, the first server of their line. Only the waiter that wins there continues to the other servers;
 * the rest have taken nothing. The first server is only a hint. A waiter asks all servers in parallel in three cases:
 * when its timer fires, when a majority without the first server was released, or when nothing has changed at the first
 * server for RECHECK_MS. So a leftover hold on that server alone blocks no waiter.
 */
import { Polling } from "../core/polling.js";
import type { Runtime, Timer } from "../core/runtime.js";
import type { Ballot, Vote } from "./ballot.js";
import { quorumOf } from "./decision.js";
import type { Line } from "./line.js";
import { RECHECK_MS } from "./pace.js";

/** With about four attempts per grant, most waiters have won before they lose this often. */
const FAIR_LOSSES = 4;
/** Added to the end of a lease, in ms, so that the lease has ended on the server too when the waiter asks. */
const AFTER_LEASE_MS = 5;

/** The pause of a waiter between two attempts. */
export class AttemptDelay {
  readonly #runtime: Runtime;
  readonly #line: Line;
  readonly #attempt: (firstServer: number | undefined) => void;
  readonly #polling: Polling;
  /** The votes of the last attempt, by server. */
  #votes: readonly (Vote | undefined)[] = [];
  readonly #freed = new Set<number>();
  #retry: Timer | undefined;
  #isOn = false;
  #wasWoken = false;
  #collisions = 0;
  /** Number of attempts that began after a wake-up and lost the first server. */
  #losses = 0;

  /** @param attempt  called when it is time for an attempt, with the server to ask first, if any */
  constructor(runtime: Runtime, line: Line, attempt: (firstServer: number | undefined) => void) {
    this.#runtime = runtime;
    this.#line = line;
    this.#attempt = attempt;
    this.#polling = new Polling(runtime, () => attempt(undefined));
  }

  /** Begins the pause after an attempt that other owners blocked. */
  begin({ votes, firstServer, lostAtFirst }: Ballot): void {
    const line = this.#line;
    if (!lostAtFirst) {
      // If the attempt won the first server and found another owner on a later one, ask that one first next time.
      const isFirst = (vote: Vote | undefined): boolean =>
        vote?.outcome === "held" || (vote?.outcome === "granted" && firstServer === undefined);
      const place = votes.findIndex(isFirst);
      line.firstServer = place < 0 ? undefined : place;
    }
    if (lostAtFirst && this.#wasWoken) {
      this.#losses += 1;
      line.passedFirst(false);
    }
    this.#collisions = this.#wasWoken && !lostAtFirst ? this.#collisions + 1 : 0;
    this.#wasWoken = false;
    this.#votes = votes;
    this.#isOn = true;
    if (!line.isSubscribed) {
      // Releases that came before the subscription was open were missed.
      void line.subscribe().then(() => {
        if (this.#votes === votes && this.#isOn && line.isSubscribed) this.#wake();
      });
      this.#polling.poll();
      return;
    }
    const jitterMs = this.#runtime.random() * 20;
    this.#polling.in(Math.min(restMsOf(votes, lostAtFirst) + AFTER_LEASE_MS, RECHECK_MS) + jitterMs);
    this.#wakeIfFree();
  }

  /** Waits for a random time, so that other processes that were notified of a release by this process get a chance. */
  giveWay(): void {
    this.#isOn = true;
    this.#wake();
  }

  /** Begins the pause after an attempt that could not reach a majority. */
  poll(): void {
    this.#isOn = true;
    this.#polling.poll();
  }

  /** Called when a hold of the lock has ended on this server. */
  released(server: number): void {
    this.#freed.add(server);
    if (this.#isOn) this.#wakeIfFree();
  }

  /** Called after a reconnect, because releases may have been missed. */
  reconnected(): void {
    if (this.#isOn) this.#wake();
  }

  /** Ends the pause, because an attempt begins or the wait is over. */
  end(): void {
    this.#isOn = false;
    this.#freed.clear();
    this.#polling.cancel();
    this.#retry?.cancel();
    this.#retry = undefined;
  }

  /**
   * Ignores a release on a minority of the servers other than the first one, because it comes from a failed attempt of
   * another waiter. Waiters that tried because of it would block each other.
   */
  #wakeIfFree(): void {
    if (this.#isFirstFree() || this.#isMajorityFree()) this.#wake();
  }

  #isFirstFree(): boolean {
    return this.#line.firstServer !== undefined && this.#freed.has(this.#line.firstServer);
  }

  #isMajorityFree(): boolean {
    const free = this.#votes.filter((vote, server) => vote?.outcome === "granted" || this.#freed.has(server));
    return free.length >= quorumOf(this.#votes.length);
  }

  #wake(): void {
    if (this.#retry !== undefined) return;
    this.#wasWoken = true;
    this.#polling.cancel();
    const { pace, firstServer, crowding } = this.#line;
    // Waiters that lose the first server have taken nothing, so only their number matters there. But two waiters that
    // each win a server block each other on the others, and without a longer delay they would repeat that in step.
    const isAtOneServer = firstServer !== undefined && this.#collisions === 0;
    // A waiter that has lost often gets a shorter delay. Otherwise a recent winner, whose `crowding` is low, would
    // always win.
    const share = Math.max(1, crowding / 2 ** Math.max(0, this.#losses - FAIR_LOSSES));
    const delayMs = isAtOneServer ? this.#runtime.random() * share * pace.winMs : pace.delayMs(this.#collisions);
    this.#retry = this.#runtime.startTimer(
      () => this.#attempt(this.#whereFirst()),
      Math.min(delayMs, RECHECK_MS),
      true,
    );
  }

  #whereFirst(): number | undefined {
    if (this.#isFirstFree()) return this.#line.firstServer;
    return this.#isMajorityFree() ? undefined : this.#line.whereFirst;
  }
}

/** Returns the time, in ms, until the first server is free if the attempt lost it, or else until a majority is free. */
function restMsOf(votes: readonly (Vote | undefined)[], lostAtFirst: boolean): number {
  const rests = votes.flatMap((vote) => (vote?.outcome === "held" ? [vote.restMs] : []));
  const granted = votes.filter((vote) => vote?.outcome === "granted").length;
  const ends = rests.map((restMs) => (restMs < 0 ? Infinity : restMs)).toSorted((a, b) => a - b);
  return ends[lostAtFirst ? 0 : quorumOf(votes.length) - granted - 1] ?? Infinity;
}
