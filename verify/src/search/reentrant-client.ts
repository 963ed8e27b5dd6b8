/**
 * What the holder of a reentrant mutex does beside what every claim does. Re-entry is local: the server is asked for
 * the hold once, and gets it back with the last of its leases, `reentrant-mutex/` of the library, rule by rule.
 */
import { LEASE_TICKS } from "./canonical.js";
import { NO_LEASES } from "./encoding.js";
import { LockClients } from "./lock-client.js";
import { type Claim, idleClaim, type LockState, older, type SharedPart } from "./lock-state.js";
import { isValid, type Place } from "./place.js";

/** The leases that stand on a claim. */
export function sharedOf(claim: Claim | undefined): SharedPart {
  if (claim?.shared === undefined) throw new Error("a claim of a reentrant mutex has leases");
  return claim.shared;
}

/** See the file header. */
export class ReentrantClients extends LockClients {
  override idle(_place: Place): Claim {
    return { ...idleClaim(), shared: { ...NO_LEASES } };
  }

  /** One more lease on the hold, with its token. */
  enters(next: LockState, number: number): void {
    next.budget.entries -= 1;
    const claim = next.claims[number] as Claim;
    const shared = sharedOf(claim);
    if (!isValid(claim)) Object.assign(claim, { set: 0, pv: 0 });
    if (this.off.has("count-at-once")) shared.late += 1;
    else shared.leases += 1;
  }

  /** Only without a rule: what was let in is counted when something else may have happened. */
  counts(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const shared = sharedOf(claim);
    shared.late -= 1;
    shared.leases += 1;
    if (claim.ph !== "held") shared.age = 0;
  }

  /** One lease is released, which is not the last. */
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
    // The rest relies on the lease as long as it lasts, or forever if it is not notified of a loss.
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

  /** Whether leases believe in a hold that was given back, or lost. */
  doBelieve(claim: Claim): boolean {
    const { leases, age } = sharedOf(claim);
    return claim.ph !== "held" && leases > 0 && age < LEASE_TICKS;
  }
}
