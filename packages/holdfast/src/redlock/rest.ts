/**
 * What one who waits for a majority does between two attempts: stays away until the leases in the way must be over, or
 * until it hears that they are.
 *
 * Those who hear it at the same moment would split the votes, and their cleanups would wake each other again. So they
 * meet at one server, the first server of their line: the first there goes on to the others, and the rest have taken nothing. The
 * first server is a hint as well. Whoever comes by the clock asks all servers, and so does who hears of a majority without it, or
 * comes when nothing has moved there for as long; so what is left over there alone keeps nobody away.
 */
import { Polling } from "../core/polling.js";
import type { Runtime, Timer } from "../core/runtime.js";
import type { Ballot } from "./ballot.js";
import { quorumOf } from "./decision.js";
import type { Line } from "./line.js";
import { RECHECK_MS } from "./pace.js";
import type { Vote } from "./vote.js";

/** Of some four who come for each grant, most have won by then. */
const FAIR_LOSSES = 4;
/** The leases in the way must be over on the servers too when a waiter asks at their end. */
const AFTER_LEASE_MS = 5;

/** See the file header. */
export class Rest {
  readonly #runtime: Runtime;
  readonly #line: Line;
  readonly #attempt: (firstServer: number | undefined) => void;
  readonly #polling: Polling;
  /** By server: what the last attempt met there. */
  #votes: readonly (Vote | undefined)[] = [];
  readonly #freed = new Set<number>();
  #retry: Timer | undefined;
  #isOn = false;
  #wasWoken = false;
  #foiled = 0;
  /** How often it came to the first server and was not the first. */
  #losses = 0;

  /** @param attempt  told when it is time to try, and which server to ask first, if any */
  constructor(runtime: Runtime, line: Line, attempt: (firstServer: number | undefined) => void) {
    this.#runtime = runtime;
    this.#line = line;
    this.#attempt = attempt;
    this.#polling = new Polling(runtime, () => attempt(undefined));
  }

  /** Others were in the way of that attempt. */
  begin({ votes, firstServer }: Ballot): void {
    const line = this.#line;
    const lostAtFirst = firstServer !== undefined && votes[firstServer.index]?.outcome === "held";
    if (!lostAtFirst) {
      // Who has won the first server, and met somebody behind it, had better ask there.
      const isFirst = (vote: Vote | undefined): boolean =>
        vote?.outcome === "held" || (vote?.outcome === "granted" && firstServer === undefined);
      const place = votes.findIndex(isFirst);
      line.firstServer = place < 0 ? undefined : place;
    }
    if (lostAtFirst && this.#wasWoken) {
      this.#losses += 1;
      line.passedFirst(false);
    }
    this.#foiled = this.#wasWoken && !lostAtFirst ? this.#foiled + 1 : 0;
    this.#wasWoken = false;
    this.#votes = votes;
    this.#isOn = true;
    const { subscribers } = line;
    const isListening = (): boolean => subscribers.open >= quorumOf(votes.length);
    if (!isListening()) {
      // What was released before it listened it has not heard.
      void subscribers.listen().then(() => {
        if (this.#votes === votes && this.#isOn && isListening()) this.#wake();
      });
      this.#polling.poll();
      return;
    }
    const jitterMs = this.#runtime.random() * 20;
    this.#polling.in(Math.min(restMsOf(votes, lostAtFirst) + AFTER_LEASE_MS, RECHECK_MS) + jitterMs);
    this.#wakeIfFree();
  }

  /** Others have heard that the lock was given back here: whoever comes now takes its chance among them. */
  giveWay(): void {
    this.#isOn = true;
    this.#wake();
  }

  /** No majority could be asked. */
  poll(): void {
    this.#isOn = true;
    this.#polling.poll();
  }

  /** Somebody's hold has ended on that server. */
  released(server: number): void {
    this.#freed.add(server);
    if (this.#isOn) this.#wakeIfFree();
  }

  /** What was released meanwhile was not heard. */
  reconnected(): void {
    if (this.#isOn) this.#wake();
  }

  /** An attempt begins, or nobody waits any more. */
  end(): void {
    this.#isOn = false;
    this.#freed.clear();
    this.#polling.cancel();
    this.#retry?.cancel();
    this.#retry = undefined;
  }

  /** A release on some servers alone is another's attempt that failed: those who try because of it would foil each other. */
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
    // Those who meet at the first server take nothing from each other, so only their number matters; but two who each win a server of
    // their own foil each other behind it, and would go on in step.
    const isAtOneServer = firstServer !== undefined && this.#foiled === 0;
    // Who has lost more often than most comes the sooner, or whoever has just won, and expects few, would win for ever.
    const share = Math.max(1, crowding / 2 ** Math.max(0, this.#losses - FAIR_LOSSES));
    const delayMs = isAtOneServer ? this.#runtime.random() * share * pace.winMs : pace.delayMs(this.#foiled);
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

/** How long until so many leases in the way have ended that a majority is free, or the first server is. */
function restMsOf(votes: readonly (Vote | undefined)[], lostAtFirst: boolean): number {
  const rests = votes.flatMap((vote) => (vote?.outcome === "held" ? [vote.restMs] : []));
  const granted = votes.filter((vote) => vote?.outcome === "granted").length;
  const ends = rests.map((restMs) => (restMs < 0 ? Infinity : restMs)).toSorted((a, b) => a - b);
  return ends[lostAtFirst ? 0 : quorumOf(votes.length) - granted - 1] ?? Infinity;
}
