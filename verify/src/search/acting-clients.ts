/**
 * What core does on its own, rule by rule: it asks, gives up, releases and leaves.
 *
 * Each method changes the state that it is given.
 */
import { LEASE_TICKS } from "./canonical.js";
import { type Claim, type ClientRule, idleClaim, type LockState, type Verb } from "./lock-state.js";
import { isValid, type Place } from "./place.js";

/** Clients that act on their own. */
export class ActingClients {
  readonly places: readonly Place[];
  protected readonly off: ReadonlySet<ClientRule>;

  /** @param off  rules that are switched off */
  constructor(places: readonly Place[], off: ReadonlySet<ClientRule>) {
    this.places = places;
    this.off = off;
  }

  /** A claim that has not begun. */
  idle(_place: Place): Claim {
    return idleClaim();
  }

  isToAsk(claim: Claim): boolean {
    if (claim.aa === 1) return true;
    if (this.off.has("recheck") && claim.q === 1) return false;
    return claim.s !== 0 && claim.s[1] >= 1;
  }

  begin(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    claim.ph = "ask";
    claim.fl = Math.max(...next.claims.map(({ tok }) => tok));
    this.send(next, number, "acquire");
  }

  send(next: LockState, number: number, verb: Verb): void {
    const claim = next.claims[number] as Claim;
    claim.call = 1;
    claim.sent = 0;
    claim.aa = 0;
    const isOfGrant = verb === "extend" || verb === "confirm" || verb === "release";
    next.requests.push([number, verb, isOfGrant ? claim.tok : 0, 0]);
  }

  /** The client no longer awaits the reply, but the request may still arrive. */
  abandon(next: LockState, number: number): void {
    Object.assign(next.claims[number] as Claim, { call: 0, sent: 0 });
    next.replies = next.replies.filter(([to]) => to !== number);
    for (const request of next.requests) if (request[0] === number && request[3] === 0) request[3] = 1;
  }

  giveUp(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const isUncertain = claim.un === 1 || claim.call === 1;
    const mustLeave = isUncertain || claim.q === 1;
    this.abandon(next, number);
    if (claim.ph === "conf") claim.tok = 0;
    if (mustLeave && !this.off.has("leave-at-all")) this.depart(next, number, isUncertain ? 1 : 0);
    else this.end(claim);
  }

  letGo(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    if (claim.call === 1) this.abandon(next, number);
    const isLate = !isValid(claim) && !this.off.has("own-clock");
    claim.ph = isLate ? "late" : "rel";
    this.send(next, number, isLate ? "extend" : "release");
  }

  /** The next caller of a batch gets the rest of the grant, and confirms it itself. */
  passOn(next: LockState, number: number): void {
    next.budget.entries -= 1;
    const claim = next.claims[number] as Claim;
    if (claim.call === 1) this.abandon(next, number);
    if (this.off.has("batch-has-the-rest")) Object.assign(claim, { set: 0, pv: 0 });
  }

  depart(next: LockState, number: number, isUncertain: 0 | 1): void {
    const claim = next.claims[number] as Claim;
    Object.assign(claim, { ph: "dep", un: isUncertain, dep: 0, ans: 0, s: 0, q: 0, fs: 0, set: 0, may: 0, fl: 0 });
    claim.pv = 0;
    this.send(next, number, "leave");
  }

  end(claim: Claim): void {
    const { tok } = claim;
    Object.assign(claim, idleClaim(), { ph: "end", tok });
  }

  /** A leaving claim ends when every request is accounted for, or nothing of the claim can be left. */
  goOn(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const isSure = (claim.ans === 1 && claim.un === 0) || claim.dep >= LEASE_TICKS;
    if (!isSure && !(claim.ans === 1 && this.off.has("keep-leaving"))) return;
    // For a request that is in flight for longer, only the end of its lease is promised.
    const isOutlived = next.requests.some(([of, , , orphan]) => of === number && orphan === 1);
    if (isOutlived && claim.dep >= LEASE_TICKS) next.late = 1;
    this.end(claim);
  }
}
