/**
 * What a wait for a condition does in addition to every claim: `condition/` of the library, rule by rule.
 *
 * A claim with the role `wait` begins with the hold of the claim before it, and ends that hold. It asks the condition
 * until it knows of its signal, and from then on asks for the mutex like any other claim.
 */
import { LEASE_TICKS } from "./canonical.js";
import { NO_WAIT } from "./encoding.js";
import { LockClients } from "./lock-client.js";
import {
  type Claim,
  idleClaim,
  type LockState,
  older,
  type Push,
  type Reply,
  type Verb,
  type WaitPart,
} from "./lock-state.js";
import { isValid, type Place } from "./place.js";

/** What a claim knows about its wait. */
export function waitOf(claim: Claim | undefined): WaitPart {
  if (claim?.wait === undefined) throw new Error("a claim in a condition's world must have a wait");
  return claim.wait;
}

/** Clients of a condition. */
export class ConditionClients extends LockClients {
  override idle(_place: Place): Claim {
    return { ...idleClaim(), wait: { ...NO_WAIT } };
  }

  /** The client holds as claim `number - 1`, and waits as `number`. */
  waits(next: LockState, number: number): void {
    const [holder, claim] = [next.claims[number - 1] as Claim, next.claims[number] as Claim];
    this.abandon(next, number - 1);
    const wait = waitOf(claim);
    wait.undo = holder.un;
    wait.from = holder.set;
    if (!this.off.has("wait-ends-the-lease")) this.end(holder);
    this.begin(next, number);
  }

  signals(next: LockState, number: number): void {
    waitOf(next.claims[number]).sig = 1;
    this.send(next, number, "signal");
  }

  override send(next: LockState, number: number, verb: Verb): void {
    const claim = next.claims[number] as Claim;
    const wait = waitOf(claim);
    const isWait = this.places[number]?.role === "wait";
    const isQuit = verb === "leave" && isWait && (claim.tok === 0 || wait.stray === 1);
    const isOfCondition = isQuit || (verb === "acquire" && isWait && wait.told === 0);
    if (!isOfCondition) {
      super.send(next, number, verb);
      if (verb === "signal") next.requests[next.requests.length - 1] = [number, "signal", claim.tok, 0];
      return;
    }
    claim.call = 1;
    claim.sent = 0;
    claim.aa = 0;
    const from = next.claims[number - 1]?.tok ?? 0;
    if (isQuit) next.requests.push([number, "quit", from, 0, wait.passed === 1 ? 2 : wait.has]);
    else next.requests.push([number, "wait", from, 0, wait.may]);
  }

  override depart(next: LockState, number: number, isUncertain: 0 | 1): void {
    this.#keep(next, number);
    super.depart(next, number, isUncertain);
  }

  override crash(next: LockState, client: number): void {
    super.crash(next, client);
    for (const [number, place] of this.places.entries()) {
      if (place.client === client) (next.claims[number] as Claim).wait = { ...NO_WAIT };
    }
  }

  override hearsNothing(next: LockState, client: number): void {
    super.hearsNothing(next, client);
    // A waiter that is gone at its turn is dropped and continues without a signal, so it cannot be tracked.
    for (const [number, place] of this.places.entries()) {
      if (place.client === client) waitOf(next.claims[number]).ran = 0;
    }
  }

  override failed(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const wait = waitOf(claim);
    const isQuit = claim.ph === "dep" && this.places[number]?.role === "wait" && (claim.tok === 0 || wait.stray === 1);
    if (isQuit) wait.quits = 1;
    if (claim.ph === "ask" && this.places[number]?.role === "wait" && wait.told === 0) wait.may = 1;
    super.failed(next, number);
  }

  override answered(next: LockState, reply: Reply): string | undefined {
    const [number, code] = reply;
    const claim = next.claims[number] as Claim;
    const wait = waitOf(claim);
    if (claim.ph === "held" && wait.sig === 1) {
      wait.sig = 2;
      if (code === 1) {
        claim.call = 0;
        claim.sent = 0;
        return undefined;
      }
      return super.answered(next, reply);
    }
    if (this.places[number]?.role !== "wait") return super.answered(next, reply);
    if (claim.ph === "dep" && (claim.tok === 0 || wait.stray === 1) && !this.off.has("pass-on-once")) wait.passed = 1;
    if (claim.ph === "dep" && claim.tok === 0 && wait.has === 0 && wait.undo === 1) {
      // The leave has released the hold, if the wait had not begun.
      wait.undo = 0;
      if (!this.off.has("undo-late-requests")) this.depart(next, number - 1, 1);
    }
    if (claim.ph !== "ask" || wait.told === 1) return super.answered(next, reply);
    if (code > 1) return this.#refused(next, number);
    if (code === 1 && wait.owed === 0 && wait.ran === 1) return "a waiter continues without a signal";
    wait.may = 1;
    if (wait.has === 0 && wait.undo === 1 && !this.off.has("undo-late-requests")) {
      this.depart(next, number - 1, 1);
    }
    wait.has = 1;
    const broken = super.answered(next, reply);
    if (code === 1) {
      wait.told = 1;
      // In the same turn, so no client can give up between the two.
      this.send(next, number, "acquire");
    }
    return broken;
  }

  override pushed(next: LockState, push: Push, isFirst = false): string | undefined {
    const claim = next.claims[push[0]] as Claim;
    const wait = waitOf(claim);
    if (claim.ph === "end" && this.places[push[0]]?.role === "wait" && push[1] !== 0) {
      if (wait.kept === 0) return undefined;
      wait.stray = 1;
      this.depart(next, push[0], 0);
      return undefined;
    }
    // A condition confirms before its caller continues.
    return super.pushed(next, push, isFirst || this.places[push[0]]?.role === "wait");
  }

  override believe(next: LockState, number: number, token: number, set: number): string | undefined {
    const claim = next.claims[number] as Claim;
    this.#keep(next, number);
    const wait = waitOf(claim);
    if (this.places[number]?.role === "wait") {
      // A signal that has taken effect is not owed to any waiter.
      if (wait.owed === 1) wait.owed = 2;
      if (!this.off.has("pass-on-once")) wait.passed = 1;
    }
    return super.believe(next, number, token, set);
  }

  override tick(next: LockState): void {
    super.tick(next);
    for (const [number, claim] of next.claims.entries()) {
      const wait = waitOf(claim);
      if (this.places[number]?.role === "wait" && claim.ph === "ask" && wait.has === 0) wait.from = older(wait.from);
    }
  }

  override end(claim: Claim): void {
    super.end(claim);
    Object.assign(waitOf(claim), { undo: 0, from: 0, twice: 0, sig: waitOf(claim).sig === 0 ? 0 : 2 });
  }

  /** Remembers a settled waiter that may still be in a queue. */
  #keep(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    if (this.places[number]?.role !== "wait") return;
    waitOf(claim).from = 0;
    if (claim.ph === "ask" && (claim.q === 1 || claim.un === 1)) waitOf(claim).kept = 1;
  }

  /** The server replied that the wait cannot begin because its hold has ended. */
  #refused(next: LockState, number: number): string | undefined {
    const claim = next.claims[number] as Claim;
    const wait = waitOf(claim);
    claim.call = 0;
    claim.sent = 0;
    if (wait.may === 0 && wait.twice === 1) {
      wait.may = 1;
      this.send(next, number, "acquire");
      return undefined;
    }
    if (wait.may === 1) return "a client that waited is told that it did not";
    if (wait.from < LEASE_TICKS) return "false loss: a valid lease is reported as lost";
    this.end(claim);
    return undefined;
  }
}

/** Whether a holder may begin to wait: only while it considers its hold valid. */
export function mayWait(claim: Claim): boolean {
  return claim.ph === "held" && isValid(claim);
}
