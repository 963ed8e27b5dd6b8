/** A world of re-entrant claims. */

import type { Add, LockSetting } from "./lock-setting.js";
import type { Claim, ClientRule, LockState } from "./lock-state.js";
import { LockWorld } from "./lock-world.js";
import { isValid, type Place } from "./place.js";
import { ReentrantClients, sharedOf } from "./reentrant-client.js";
import type { Server } from "./server.js";

/** A world with one re-entrant mutex. */
export class ReentrantWorld extends LockWorld<ReentrantClients> {
  constructor(setting: LockSetting, server: Server, off: readonly ClientRule[] = []) {
    super(setting, server, off, (places, rules) => new ReentrantClients(places, rules));
  }

  override believed(state: LockState, number: number): number {
    const claim = state.claims[number];
    if (claim !== undefined && this.clients.doBelieve(claim)) return this.places[number]?.weight ?? 0;
    return super.believed(state, number);
  }

  /** F3: a nested hold has the same token as the outer one. */
  override violation(state: LockState): string | undefined {
    for (const [number, { client }] of this.places.entries()) {
      const [outer, inner] = [state.claims[number - 1], state.claims[number]];
      if (this.places[number - 1]?.client !== client || outer?.ph !== "held" || inner?.ph !== "held") continue;
      return "F3: a nested acquire has another token";
    }
    return super.violation(state);
  }

  /** An acquire after the release of the outer hold gets a separate hold, without waiting for the release's reply. */
  protected override mayBegin(state: LockState, number: number): boolean {
    const { client } = this.places[number] as Place;
    if (state.dead.includes(client)) return false;
    if (this.places[number - 1]?.client !== client) return super.mayBegin(state, number);
    const before = state.claims[number - 1];
    if (this.off.has("entry-keeps-token") && before?.ph === "held") return true;
    return ["rel", "late", "dep", "end"].includes(before?.ph ?? "");
  }

  protected override addClientSteps(state: LockState, add: Add): void {
    super.addClientSteps(state, add);
    for (const [number, claim] of state.claims.entries()) {
      const { late, leases } = sharedOf(claim);
      const name = this.name(number);
      if (late > 0) add(`the nested lease of ${name} is counted`, false, (next) => this.clients.counts(next, number));
      if (this.off.has("over-with-the-last") && claim.ph === "rel" && isValid(claim) && leases === 0) {
        add(`${name} is entered again`, true, () => "false loss: a released hold is reported as lost");
      }
    }
  }

  protected override addHolderSteps(state: LockState, number: number, name: string, add: Add): void {
    const claim = state.claims[number] as Claim;
    const { leases } = sharedOf(claim);
    const mayEnter = isValid(claim) || this.off.has("no-entry-when-lost");
    if (mayEnter && state.budget.entries > 0) {
      add(`${name} is entered again`, true, (next) => this.clients.enters(next, number));
    }
    if (leases > 1 && isValid(claim) && !this.off.has("last-gives-back")) {
      this.addConfirmation(state, number, name, add);
      add(`a lease of ${name} ends`, false, (next) => this.clients.leaves(next, number));
      return;
    }
    super.addHolderSteps(state, number, name, add);
  }
}
