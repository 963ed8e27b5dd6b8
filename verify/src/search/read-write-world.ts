/** A world of readers and writers that may downgrade and upgrade. */

import { INBOX, type LockKind, permitsKind } from "./lock-kinds.js";
import type { Add, LockSetting } from "./lock-setting.js";
import type { Claim, ClientRule, LockState, Reply, Request } from "./lock-state.js";
import { LockWorld } from "./lock-world.js";
import { isValid, type Place } from "./place.js";
import { EVERYTHING, ReadWriteClients, sideOf } from "./read-write-client.js";
import type { Call, Held, Outcome, Server } from "./server.js";

/** A read-write lock: a reader takes one permit, a writer takes all. */
export const readWriteKind: LockKind = permitsKind(EVERYTHING, {
  tooMany: "X2: a writer is not alone",
  tooManyGiven: "X2: the server lets others in beside a writer",
});

/** A world with one read-write lock. */
export class ReadWriteWorld extends LockWorld<ReadWriteClients> {
  constructor(
    setting: LockSetting,
    server: Server,
    off: readonly ClientRule[] = [],
    make: (places: readonly Place[], off: ReadonlySet<ClientRule>) => ReadWriteClients = (places, rules) =>
      new ReadWriteClients(places, rules),
  ) {
    super(setting, server, off, make);
  }

  override believed(state: LockState, number: number): number {
    const claim = state.claims[number];
    if (claim?.ph !== "held") return 0;
    return sideOf(claim).isWriter === 1 ? EVERYTHING : 1;
  }

  override callOf(request: Request): Call {
    const [number, verb, token, , more = 0] = request;
    const { owner } = this.places[number] as Place;
    const keys = ["s", "f", "h", "t", "q", "p"];
    if (verb === "reweigh") {
      const [change, weight] = [Math.floor(more / 2), more % 2 === 1 ? EVERYTHING : 1];
      return { script: "permits/reweigh", keys, args: [owner, token, weight, change, INBOX, 0] };
    }
    if (verb === "renew") return super.callOf([number, "extend", token, 0]);
    return super.callOf(request);
  }

  override replyOf(request: Request, outcome: Outcome, slow: number): Reply {
    const { reply } = outcome;
    if (request[1] !== "reweigh" || typeof reply === "number") return super.replyOf(request, outcome, slow);
    return [request[0], Number(reply[0]), slow, 0, Number(reply[1])];
  }

  override broken(
    before: LockState,
    next: LockState,
    request: Request,
    outcome: Outcome,
    after: Held,
  ): string | undefined {
    const broken = super.broken(before, next, request, outcome, after);
    const [number, verb, , orphan] = request;
    // A late renewal has no reply in flight.
    if (broken !== undefined || verb !== "renew" || orphan !== 0) return broken;
    next.replies = next.replies.filter(([to], at) => to !== number || at < next.replies.length - 1);
    return this.clients.renewed(next, number, Number(outcome.reply));
  }

  protected override addHolderSteps(state: LockState, number: number, name: string, add: Add): void {
    const claim = state.claims[number] as Claim;
    const { isWriter, doubt, renewal } = sideOf(claim);
    if (isValid(claim) && renewal === 0 && claim.pv === 1) {
      add(`${name} confirms`, false, (next) => this.clients.confirms(next, number));
    }
    if (isValid(claim) && renewal === 0 && claim.set >= 1 && claim.pv === 0 && state.budget.renewals > 0) {
      add(`${name} renews`, true, (next) => this.clients.renews(next, number));
    }
    if (isValid(claim) && claim.call === 0 && state.budget.changes > 0) {
      if (isWriter === 1 || doubt === 1) {
        add(`${name} downgrades`, true, (next) => this.clients.changes(next, number, 0));
      }
      if (isWriter === 0) {
        add(`${name} tries to upgrade`, true, (next) => this.clients.changes(next, number, 1));
      }
    }
    add(`${name} ${isValid(claim) ? "releases" : "finds its lease over"}`, false, (next) =>
      this.clients.letGo(next, number),
    );
  }
}
