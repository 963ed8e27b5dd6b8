/**
 * What the holder of a reentrant mutex does in addition to every claim: `reentrant-mutex/` of the library, rule by rule.
 * Re-entry is local. The server grants the hold once, and the hold is released with the last of its leases.
 */
import { LEASE_TICKS } from "./canonical.js";
import { NO_LEASES } from "./encoding.js";
import { LockClients } from "./lock-client.js";
import { type Claim, idleClaim, type LockState, older, type SharedPart } from "./lock-state.js";
import { isValid, type Place } from "./place.js";

/** The part of a claim about its leases. */
export function sharedOf(claim: Claim | undefined): SharedPart {
  if (claim?.shared === undefined) throw new Error("a claim of a reentrant mutex must have leases");
  return claim.shared;
}

/** Clients of a reentrant mutex. */
export class ReentrantClients extends LockClients {
  override idle(_place: Place): Claim {
    return { ...idleClaim(), shared: { ...NO_LEASES } };
  }

  /** Adds a lease to the hold, with its token. */
  enters(next: LockState, number: number): void {
    next.budget.entries -= 1;
    const claim = next.claims[number] as Claim;
    const shared = sharedOf(claim);
    if (!isValid(claim)) Object.assign(claim, { set: 0, pv: 0 });
    if (this.off.has("count-at-once")) shared.late += 1;
    else shared.leases += 1;
  }

  /** Only without a rule: a nested lease is counted in a later step, so other steps may come in between. */
  counts(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const shared = sharedOf(claim);
    shared.late -= 1;
    shared.leases += 1;
    if (claim.ph !== "held") shared.age = 0;
  }

  /** Releases a lease that is not the last one. */
  leaves(next: LockState, number: number): void {
    sharedOf(next.claims[number]).leases -= 1;
  }

  override believe(next: LockState, number: number, token: number, set: number): string | undefined {
    sharedOf(next.claims[number]).leases = 1;
    return super.believe(next, number, token, set);
  }

  override letGo(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const shared = sharedOf(claim);
    // The other leases rely on the hold until its lease ends, or longer if they are not notified of a loss.
    shared.age = this.off.has("loss-ends-all") && !isValid(claim) ? 0 : claim.set;
    const isToGo = this.off.has("last-gives-back") || (this.off.has("loss-ends-all") && !isValid(claim));
    shared.leases = isToGo ? shared.leases - 1 : 0;
    if (shared.leases === 0 && shared.late === 0) shared.age = 0;
    super.letGo(next, number);
  }

  override crash(next: LockState, client: number): void {
    super.crash(next, client);
    for (const [number, place] of this.places.entries()) {
      if (place.client === client) (next.claims[number] as Claim).shared = { ...NO_LEASES };
    }
  }

  override tick(next: LockState): void {
    super.tick(next);
    for (const claim of next.claims) {
      const shared = sharedOf(claim);
      if (claim.ph !== "held" && shared.leases > 0) shared.age = older(shared.age);
    }
  }

  /** Whether leases rely on a hold that was released or lost. */
  doBelieve(claim: Claim): boolean {
    const { leases, age } = sharedOf(claim);
    return claim.ph !== "held" && leases > 0 && age < LEASE_TICKS;
  }
}
