/**
 * A world of readers and writers in which some claims steal the lock: `holdfast/web-locks` with the option `steal`.
 *
 * After a steal, the former holder relies on its lease until it is notified, at any later time. This is not a
 * violation. A steal must leave the thief as the only holder on the server, keep the queue, notify
 * each former holder, and take effect once, however often its request arrives.
 */
import { LEASE_MS } from "./canonical.js";
import { INBOX } from "./lock-kinds.js";
import type { LockSetting } from "./lock-setting.js";
import { type Claim, type ClientRule, type LockState, OLD, type Reply, type Request } from "./lock-state.js";
import type { Place } from "./place.js";
import { accountOfPlaces } from "./provisional.js";
import { EVERYTHING, ReadWriteClients, sideOf } from "./read-write-client.js";
import { ReadWriteWorld } from "./read-write-world.js";
import type { Call, Held, Outcome, Server } from "./server.js";

/** Clients of which some steal the lock. */
class StealClients extends ReadWriteClients {
  override answered(next: LockState, reply: Reply): string | undefined {
    const [number, code] = reply;
    const claim = next.claims[number] as Claim;
    this.#findOut(claim);
    if (claim.ph === "ask" && code === 0 && this.places[number]?.role === "steal") {
      // The claim stole the lock earlier and has lost it since, so its request fails.
      Object.assign(claim, { call: 0, sent: 0 });
      this.depart(next, number, claim.un);
      return undefined;
    }
    return super.answered(next, reply);
  }

  override renewed(next: LockState, number: number, code: number): string | undefined {
    this.#findOut(next.claims[number] as Claim);
    return super.renewed(next, number, code);
  }

  override end(claim: Claim): void {
    const { stole } = sideOf(claim);
    super.end(claim);
    sideOf(claim).stole = stole;
  }

  /** Ends the lease of a former holder as soon as it learns of the steal. */
  #findOut(claim: Claim): void {
    if (isRobbed(claim)) claim.set = OLD;
  }
}

/** A world with one lock that some claims steal. */
export class StealWorld extends ReadWriteWorld {
  constructor(setting: LockSetting, server: Server, off: readonly ClientRule[] = []) {
    super(setting, server, off, (places, rules) => new StealClients(places, rules));
  }

  override believed(state: LockState, number: number): number {
    const claim = state.claims[number];
    return claim !== undefined && isRobbed(claim) ? 0 : super.believed(state, number);
  }

  override callOf(request: Request): Call {
    if (!this.#isSteal(request)) return super.callOf(request);
    const { owner } = this.places[request[0]] as Place;
    const keys = ["s", "f", "h", "t", "q", "p", "e"];
    return { script: "web-locks/steal", keys, args: [owner, LEASE_MS, EVERYTHING, INBOX, ""] };
  }

  override isWait(request: Request, outcome: Outcome): boolean {
    return !this.#isSteal(request) && super.isWait(request, outcome);
  }

  override broken(
    before: LockState,
    next: LockState,
    request: Request,
    outcome: Outcome,
    after: Held,
  ): string | undefined {
    const [had, has] = [before.held, after].map((held) => this.setting.kind.holders(held)) as [Owners, Owners];
    const isSteal = this.#isSteal(request);
    const fence = Number(before.held.find(([key]) => key === "f")?.[2] ?? 0);
    for (const [number, { owner }] of this.places.entries()) {
      if (isSteal && had.has(owner) && !has.has(owner)) sideOf(next.claims[number]).robbed = fence;
    }
    if (!isSteal) return super.broken(before, next, request, outcome, after);
    return (
      this.#brokenBySteal(before, next, request, outcome, had) ??
      accountOfPlaces(this, before, next, request, outcome, this.listening(next))
    );
  }

  #brokenBySteal(
    before: LockState,
    next: LockState,
    [number]: Request,
    { reply, told, held }: Outcome,
    had: Owners,
  ): string | undefined {
    const { kind } = this.setting;
    const { owner: thief } = this.places[number] as Place;
    if (typeof reply !== "number" || had.has(thief)) return undefined;
    const side = sideOf(next.claims[number]);
    if (side.stole === 1) return "a late steal ends the holds that came after it";
    side.stole = 1;
    if ([...kind.holders(held).keys()].join() !== thief) return "X2: a steal leaves another holder";
    const queues = [before.held, held].map((one) => kind.waiters(one).join());
    if (queues[0] !== queues[1] && before.gone.length === 0) return "a steal takes a place in the queue";
    const lapsed = kind.lapsed(before.held, before.t);
    const silent = [...had.keys()].find((owner) => {
      const [client, shown] = owner.split("/");
      return !lapsed.includes(owner) && !told.some(([to, text]) => to === INBOX + client && text === `-${shown}`);
    });
    return silent === undefined ? undefined : "a steal does not notify a former holder";
  }

  #isSteal([number, verb]: Request): boolean {
    return verb === "acquire" && this.places[number]?.role === "steal";
  }
}

type Owners = ReadonlyMap<string, number>;

/** Whether a steal ended the grant that the claim knows. A later grant to the claim, by a second copy, is different. */
function isRobbed(claim: Claim): boolean {
  return claim.tok > 0 && claim.tok <= sideOf(claim).robbed;
}
