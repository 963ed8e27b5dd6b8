/**
 * What a lease of a read-write lock does in addition to every claim: it upgrades and downgrades, `read-write-lock/` of
 * the library, rule by rule. It may be renewed in the meantime.
 */
import { READS } from "./encoding.js";
import { LockClients } from "./lock-client.js";
import { type Claim, idleClaim, type LockState, older, type Reply, type SidePart } from "./lock-state.js";
import { isValid, type Place } from "./place.js";

/** The permits of a writer; a reader takes one. */
export const EVERYTHING = 1_000_000;

/** The part of a claim about its mode. */
export function sideOf(claim: Claim | undefined): SidePart {
  if (claim?.side === undefined) throw new Error("a claim of a read-write lock must have a side");
  return claim.side;
}

/** Clients of a read-write lock. */
export class ReadWriteClients extends LockClients {
  override idle(place: Place): Claim {
    return { ...idleClaim(), side: { ...READS, isWriter: place.weight === EVERYTHING ? 1 : 0 } };
  }

  changes(next: LockState, number: number, isWriter: 0 | 1): void {
    const side = sideOf(next.claims[number]);
    next.budget.changes -= 1;
    side.change += 1;
    side.doubt = 1;
    side.asked = isWriter;
    if (isWriter === 0 && !this.off.has("downgrade-from-asking")) side.isWriter = 0;
    if (isWriter === 1 && this.off.has("upgrade-when-confirmed")) side.isWriter = 1;
    this.send(next, number, "reweigh");
    const more = side.change * 2 + isWriter;
    next.requests[next.requests.length - 1] = [number, "reweigh", next.claims[number]?.tok ?? 0, 0, more];
  }

  renews(next: LockState, number: number): void {
    next.budget.renewals -= 1;
    this.confirms(next, number);
  }

  /** Requests the full lease, whatever else is in flight. */
  confirms(next: LockState, number: number): void {
    sideOf(next.claims[number]).renewal = 1;
    next.requests.push([number, "renew", next.claims[number]?.tok ?? 0, 0]);
  }

  /** Handles the reply to a renewal, which arrives immediately or never. */
  renewed(next: LockState, number: number, code: number): string | undefined {
    const claim = next.claims[number] as Claim;
    const side = sideOf(claim);
    const age = side.renewal - 1;
    side.renewal = 0;
    if (claim.ph !== "held") return undefined;
    if (code === 1) {
      claim.set = Math.min(claim.set, age);
      claim.pv = 0;
      return undefined;
    }
    if (isValid(claim)) return "false loss: a valid lease is reported as lost";
    this.letGo(next, number);
    return undefined;
  }

  override letGo(next: LockState, number: number): void {
    super.letGo(next, number);
    const side = sideOf(next.claims[number]);
    side.renewal = 0;
    for (const request of next.requests) {
      if (request[0] === number && request[1] === "renew" && request[3] === 0) request[3] = 1;
    }
  }

  override answered(next: LockState, reply: Reply): string | undefined {
    const [number, code, , , latest = 0] = reply;
    const claim = next.claims[number] as Claim;
    const side = sideOf(claim);
    if (claim.ph !== "held" || side.doubt === 0 || claim.call === 0) return super.answered(next, reply);
    claim.call = 0;
    claim.sent = 0;
    side.doubt = 0;
    if (code === 0) return undefined;
    if (code > 1) {
      if (isValid(claim)) return "false loss: a valid lease is reported as lost";
      this.letGo(next, number);
      return undefined;
    }
    const isUpgrade = side.asked === 1;
    // A client whose downgrade never ran remains a writer, and keeps its token.
    const isHighest = next.claims.every(({ tok }, other) => tok < latest || (other === number && tok === latest));
    if (isUpgrade && !isHighest) {
      return "F2: a writer does not have the highest token";
    }
    claim.tok = latest;
    side.isWriter = isUpgrade ? 1 : 0;
    return undefined;
  }

  override crash(next: LockState, client: number): void {
    super.crash(next, client);
    for (const [number, place] of this.places.entries()) {
      if (place.client === client) (next.claims[number] as Claim).side = { ...READS };
    }
  }

  override end(claim: Claim): void {
    super.end(claim);
    claim.side = { ...READS };
  }

  override tick(next: LockState): void {
    super.tick(next);
    for (const claim of next.claims) {
      const side = sideOf(claim);
      if (side.renewal > 0) side.renewal = older(side.renewal - 1) + 1;
    }
  }
}
