/**
 * A waiter's pause between two attempts. The pause ends when the leases that block the waiter are certain to have
 * ended, or when a message reports that they have ended.
 *
 * If all waiters that get the same message asked all servers, they would split the votes, and their cleanups would wake
 * them all again. So each waiter asks one server first: the first server of its line. Only the waiter that wins there
 * continues to the other servers. Waiters that lose there have taken nothing, so they block no other waiter. A waiter
 * asks all servers in parallel in three cases: when its timer fires, when a majority is free but the first server is
 * not, or when nothing has changed at the first server for RECHECK_MS. So a leftover hold on the first server alone
 * cannot block a waiter.
 */
import { Polling } from "../core/polling.js";
import type { Runtime, Timer } from "../core/runtime.js";
import type { Ballot, Vote } from "./ballot.js";
import { quorumOf } from "./decision.js";
import type { Line } from "./line.js";
import { RECHECK_MS } from "./pace.js";

/**
 * After this many losses, a waiter's delays get shorter. About one in four attempts wins, so most waiters win before
 * that.
 */
const FAIR_LOSSES = 4;
/** Added to the end of a lease, in ms, so that the lease has ended on the server too when the waiter asks. */
const AFTER_LEASE_MS = 5;

/** Decides when a waiter makes its next attempt. */
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

  /** @param attempt  called when it is time for an attempt, with the server to ask first; undefined to ask all */
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
      // Next time, start with the first server that another owner holds. If this attempt asked all servers in parallel,
      // a server that it won counts too.
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
      // Releases are missed until the subscription is open, so try again as soon as it is open.
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

  /**
   * Waits for a random time, so that other processes get a chance after this process has notified them of a release.
   */
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
   * Wakes the waiter if the first server or a majority is free. A release that frees neither comes from another
   * waiter's failed attempt. If waiters reacted to such releases, they would block each other.
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
    // Waiters that lose the first server have taken nothing, so the delay there depends only on their number. But two
    // waiters that each win a server block each other on the other servers. Without a longer delay, they would do so
    // again and again.
    const isAtOneServer = firstServer !== undefined && this.#collisions === 0;
    // The delay is shorter for a waiter that has lost more than FAIR_LOSSES times. Otherwise, a recent winner, whose
    // `crowding` is low, would always win.
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

/** Returns the time until a majority is free, or, if the attempt lost at the first server, until that is free; in ms. */
function restMsOf(votes: readonly (Vote | undefined)[], lostAtFirst: boolean): number {
  const rests = votes.flatMap((vote) => (vote?.outcome === "held" ? [vote.restMs] : []));
  const granted = votes.filter((vote) => vote?.outcome === "granted").length;
  const ends = rests.map((restMs) => (restMs < 0 ? Infinity : restMs)).toSorted((a, b) => a - b);
  return ends[lostAtFirst ? 0 : quorumOf(votes.length) - granted - 1] ?? Infinity;
}
