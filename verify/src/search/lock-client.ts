/**
 * How core reacts to each event, one branch per rule. Together with acting-clients.ts (what core does on its own), this
 * is the client's half of a world of claims.
 *
 * Each method changes the given state and returns the violation, if any.
 */
import { ActingClients } from "./acting-clients.js";
import { HAND_OFF_TICKS, LEASE_TICKS, TICK_MS } from "./canonical.js";
import { type Claim, idleClaim, type LockState, older, type Push, type Reply } from "./lock-state.js";
import { isValid } from "./place.js";
import { afterTick } from "./server.js";

/** The clients of a world. */
export class LockClients extends ActingClients {
  crash(next: LockState, client: number): void {
    next.budget.crashes -= 1;
    next.dead.push(client);
    next.dead.sort((left, right) => left - right);
    next.deaf = next.deaf.filter((other) => other !== client);
    next.frozen = next.frozen.filter((other) => other !== client);
    for (const [number, place] of this.places.entries()) {
      if (place.client !== client) continue;
      this.abandon(next, number);
      next.pushes = next.pushes.filter(([to]) => to !== number);
      const { tok } = next.claims[number] as Claim;
      next.claims[number] = { ...idleClaim(), ph: "dead", tok };
    }
  }

  hearsNothing(next: LockState, client: number): void {
    next.budget.deaf -= 1;
    next.deaf.push(client);
    next.deaf.sort((left, right) => left - right);
    next.pushes = next.pushes.filter(([to]) => this.places[to]?.client !== client);
  }

  /** The process asks the server again, because it may have missed messages. */
  hearsAgain(next: LockState, client: number): void {
    next.deaf = next.deaf.filter((other) => other !== client);
    for (const [number, place] of this.places.entries()) {
      const claim = next.claims[number] as Claim;
      if (place.client !== client) continue;
      if (claim.ph === "ask" || (claim.ph === "dep" && claim.un === 1)) claim.aa = 1;
    }
  }

  /** The process stops; the server and the network do not notice. */
  freezes(next: LockState, client: number): void {
    next.budget.freezes -= 1;
    next.frozen.push(client);
    next.frozen.sort((left, right) => left - right);
  }

  goesOn(next: LockState, client: number): void {
    next.frozen = next.frozen.filter((other) => other !== client);
  }

  failed(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const { sent } = claim;
    this.abandon(next, number);
    switch (claim.ph) {
      case "ask":
        claim.un = 1;
        claim.aa = 1;
        break;
      case "conf":
        // The next request has the same effect as the confirmation, if the grant is still valid.
        claim.un = 1;
        this.asksOn(claim);
        break;
      case "held":
        if (this.off.has("confirmed-when-answered") && claim.pv === 1) this.#isConfirmed(claim, sent);
        break;
      case "rel":
        claim.may = this.off.has("sent-twice") ? 0 : 1;
        break;
      case "late":
        this.depart(next, number, claim.un);
        break;
      case "dep":
        claim.un = 1;
        this.goOn(next, number);
        // The server never replied to the leave. If it still holds a grant for this claim, that ends with its lease.
        if (claim.ph !== "dep") next.late = 1;
        break;
      default:
    }
  }

  answered(next: LockState, [number, code, slow, age]: Reply): string | undefined {
    const claim = next.claims[number] as Claim;
    const { sent } = claim;
    // This reply took so long that there is no time to send the leave again.
    const isDoubtful = claim.un === 1 && sent >= 1;
    claim.call = 0;
    claim.sent = 0;
    switch (claim.ph) {
      case "ask":
        if (code > 1) {
          if (sent < LEASE_TICKS || this.off.has("validity-from-sending")) {
            return this.believe(next, number, code, this.off.has("validity-from-sending") ? 0 : sent);
          }
          claim.un = 1;
          claim.aa = 1;
          return undefined;
        }
        claim.s = [slow, age];
        for (const push of next.pushes) if (push[0] === number && push[2] === 1) push[2] = 2;
        claim.q = code === 0 ? 1 : 0;
        return undefined;
      case "conf":
        if (code === 1 || this.off.has("refusal-is-none")) {
          if (sent < LEASE_TICKS) {
            const token = claim.tok;
            claim.tok = 0;
            return this.believe(next, number, token, sent);
          }
          claim.un = 1;
        }
        this.asksOn(claim);
        return undefined;
      case "held":
        if (code === 1 || this.off.has("honour-loss")) {
          this.#isConfirmed(claim, sent);
          return undefined;
        }
        if (isValid(claim)) return "false loss: a valid lease is reported as lost";
        claim.ph = "late";
        this.send(next, number, "extend");
        return undefined;
      case "rel": {
        const mayHaveRun = claim.may === 1 && !this.off.has("sent-twice");
        const isLoss = code !== 1 && !(mayHaveRun && code !== 4);
        if (isLoss && isValid(claim)) return "false loss: a release in time is reported as too late";
        if (claim.un === 1) this.depart(next, number, 1);
        else this.end(claim);
        return undefined;
      }
      case "late":
        this.depart(next, number, claim.un);
        return undefined;
      case "dep":
        claim.ans = 1;
        this.goOn(next, number);
        if (claim.ph !== "dep" && isDoubtful) next.late = 1;
        return undefined;
      default:
        return undefined;
    }
  }

  /** The claim waits again, because its grant was not confirmed. */
  protected asksOn(claim: Claim): void {
    Object.assign(claim, { ph: "ask", tok: 0, aa: 1 });
  }

  /** The server has started the full lease, no earlier than the request was sent. */
  #isConfirmed(claim: Claim, sent: number): void {
    claim.set = Math.min(claim.set, sent);
    claim.pv = 0;
  }

  /** @param isFirst  whether the client confirms the grant before it notifies the caller */
  pushed(next: LockState, [number, token, order, age]: Push, isFirst = false): string | undefined {
    const claim = next.claims[number] as Claim;
    // A message without a token is not a grant but a hint to ask again.
    if (token === 0) {
      if (claim.ph === "ask") claim.aa = 1;
      return undefined;
    }
    if (claim.ph === "dep" && claim.call === 0) this.send(next, number, "leave");
    // The session remembers claims that have ended, and leaves again if a late grant arrives for one of them.
    if (claim.ph === "end" && claim.tok === 0) this.depart(next, number, 0);
    if (claim.ph !== "ask") return undefined;
    let set = claim.fs;
    if (claim.s !== 0) set = claim.s[0] + Math.min(claim.s[1], age);
    if (this.off.has("earliest-grant")) set = 0;
    const isStale = order === 2 && !this.off.has("stale-grant");
    if (isStale || set >= 1) {
      claim.aa = 1;
      return undefined;
    }
    if (claim.call === 1) {
      this.abandon(next, number);
      claim.un = 1;
    }
    if (this.places[number]?.protocol === 0) return this.believe(next, number, token, set);
    if (isFirst) {
      Object.assign(claim, { ph: "conf", tok: token });
      this.send(next, number, "confirm");
      return undefined;
    }
    const isShort = !this.off.has("hand-over-is-short");
    const broken = this.believe(next, number, token, isShort ? set + LEASE_TICKS - HAND_OFF_TICKS : set);
    claim.pv = 1;
    return broken;
  }

  believe(next: LockState, number: number, token: number, set: number): string | undefined {
    const claim = next.claims[number] as Claim;
    const floor = claim.fl;
    const isKnown = next.claims.some(({ tok }) => tok === token);
    Object.assign(claim, { ph: "held", tok: token, set, pv: 0, s: 0, q: 0, aa: 0, fs: 0, fl: 0 });
    if (isKnown) return "F1: two grants have the same token";
    if (token <= floor) return "F2: a later grant has a lower token";
    return undefined;
  }

  tick(next: LockState): void {
    next.t += TICK_MS * 1_000;
    next.held = afterTick(next.held, TICK_MS);
    for (const number of next.due) {
      const client = this.places[number]?.client ?? -1;
      if (!next.gone.includes(client)) next.gone.push(client);
    }
    next.gone.sort((left, right) => left - right);
    next.due = [];
    for (const claim of next.claims) {
      if (claim.call === 1) claim.sent = older(claim.sent);
      if (claim.ph === "ask" || claim.ph === "conf") {
        if (claim.s === 0) claim.fs = older(claim.fs, 1);
        else claim.s = [claim.s[0], older(claim.s[1], 1)];
      }
      if (claim.ph === "held" || claim.ph === "rel") claim.set = older(claim.set);
      if (claim.ph === "dep") {
        claim.dep = older(claim.dep);
        if (claim.call === 0) claim.aa = 1;
      }
    }
    for (const reply of next.replies) reply[3] = older(reply[3], 1);
    for (const push of next.pushes) push[3] = older(push[3]);
  }
}
