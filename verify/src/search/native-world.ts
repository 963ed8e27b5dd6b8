/**
 * A world with a mutex whose holders release it without a script: DELIFEQ of the lock, then EXISTS of the queue
 * (docs/adr/149).
 *
 * Other requests can run between the two. If the holder finds a waiter, it sends the release script. The world checks
 * that a waiter gets such a lock before the clock advances, unless a fault prevents that.
 */
import { NOT_KEPT } from "./encoding.js";
import { LockClients } from "./lock-client.js";
import type { LockSetting } from "./lock-setting.js";
import { type Claim, type ClientRule, idleClaim, type LockState, type Reply, type Request } from "./lock-state.js";
import { LockWorld } from "./lock-world.js";
import { isFrozen, isValid, type Place } from "./place.js";
import type { Call, Held, Outcome, Server } from "./server.js";

/** The replies to both commands: the lock was kept, deleted and is free, or deleted while a claim waits. */
const KEPT = 10;
const FREED = 11;
const WAITED = 12;

/** The commands as scripts, because the server of a search runs nothing else. */
export const COMMANDS: ReadonlyMap<string, string> = new Map([
  ["DELIFEQ", "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"],
  ["EXISTS", "return redis.call('EXISTS', KEYS[1])"],
]);

/**
 * The clients. In this world, `keep.may` means that the claim was granted by the reply to its only request, `keep.was`
 * that this request was sent twice, and `keep.owed` that the lock was deleted and not granted since.
 */
class NativeClients extends LockClients {
  override idle(_place: Place): Claim {
    return { ...idleClaim(), keep: { ...NOT_KEPT } };
  }

  override answered(next: LockState, reply: Reply): string | undefined {
    const [number, code] = reply;
    const claim = next.claims[number] as Claim;
    if (claim.ph === "rel" && code >= KEPT && code <= WAITED) {
      Object.assign(claim, { call: 0, sent: 0 });
      if (code === FREED || (code === WAITED && this.off.has("look-after-delete"))) this.end(claim);
      else {
        if (code === WAITED) claim.may = 1;
        this.send(next, number, "release");
      }
      return undefined;
    }
    const isPlain = claim.s === 0 && claim.un === 0 && claim.aa === 0 && claim.keep?.was === 0;
    const isGranted = claim.ph === "ask" && code > 1;
    const broken = super.answered(next, reply);
    if (isGranted && claim.ph === "held" && isPlain && claim.keep !== undefined) claim.keep.may = 1;
    return broken;
  }

  override letGo(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    if (claim.keep?.may !== 1 || !isValid(claim) || claim.call === 1) {
      super.letGo(next, number);
      return;
    }
    claim.ph = "rel";
    this.send(next, number, this.off.has("delete-before-look") ? "look" : "delete");
  }

  override end(claim: Claim): void {
    const { keep } = claim;
    super.end(claim);
    claim.keep = { ...NOT_KEPT, owed: keep?.owed ?? 0 };
  }

  override crash(next: LockState, client: number): void {
    super.crash(next, client);
    for (const [number, place] of this.places.entries()) {
      if (place.client === client) (next.claims[number] as Claim).keep = { ...NOT_KEPT };
    }
  }
}

/** The world. */
export class NativeWorld extends LockWorld<NativeClients> {
  constructor(setting: LockSetting, server: Server, off: readonly ClientRule[] = []) {
    super(setting, server, off, (places, rules) => new NativeClients(places, rules));
  }

  override callOf(request: Request, state: LockState): Call {
    const [number, verb, token] = request;
    const { owner, weight } = this.places[number] as Place;
    if (verb === "delete") return { script: "DELIFEQ", keys: ["l"], args: [owner] };
    if (verb === "look") return { script: "EXISTS", keys: ["q"], args: [] };
    const call = this.setting.kind.call(verb, owner, weight, token, this.setting.enqueue);
    // After a release that may have run, the script also hands over a free lock.
    return verb === "release" ? { ...call, args: [...call.args, state.claims[number]?.may ?? 0] } : call;
  }

  /** The second command, which the client has sent together with the first. Its `token` is the reply to the first. */
  override followedBy([number, verb, before, orphan]: Request, { reply }: Outcome): Request | undefined {
    const first = this.off.has("delete-before-look") ? "look" : "delete";
    if (verb !== first || orphan !== 0 || before === -1) return undefined;
    return [number, first === "look" ? "delete" : "look", Number(reply), 0];
  }

  override copied(claim: Claim, verb: Request[1]): void {
    if (verb === "delete") claim.may = 1;
    if (verb === "acquire" && claim.keep !== undefined) claim.keep.was = 1;
  }

  override replyOf(request: Request, outcome: Outcome, slow: number): Reply {
    const [number, verb, before] = request;
    if (verb !== "look" && verb !== "delete") return super.replyOf(request, outcome, slow);
    const [deleted, isThere] = verb === "look" ? [before, outcome.reply] : [outcome.reply, before];
    return [number, deleted === 0 ? KEPT : isThere === 0 ? FREED : WAITED, slow, 0];
  }

  override broken(
    before: LockState,
    next: LockState,
    request: Request,
    outcome: Outcome,
    after: Held,
  ): string | undefined {
    const [number, verb] = request;
    const { kind } = this.setting;
    const isFree = kind.holders(after).size === 0;
    const keep = next.claims[number]?.keep;
    if (verb === "delete" && outcome.reply === 1 && keep !== undefined) keep.owed = 1;
    if (!isFree) for (const claim of next.claims) if (claim.keep !== undefined) claim.keep.owed = 0;
    return verb === "delete" || verb === "look" ? undefined : super.broken(before, next, request, outcome, after);
  }

  override async steps(state: LockState): ReturnType<LockWorld["steps"]> {
    const isForgotten = this.#isForgotten(state);
    const steps = await super.steps(state);
    if (!isForgotten) return steps;
    const violation = "L3: it was released, but the waiting claim does not get it";
    return steps.map((step) => (!step.isFault && step.next.t > state.t + 100_000 ? { ...step, violation } : step));
  }

  /** Whether a lock that was deleted is free while a claim waits, and no fault explains that. */
  #isForgotten(state: LockState): boolean {
    const { timeouts = 0, pushes = 0, deaf = 0, crashes = 0 } = this.setting.budget;
    const { budget } = state;
    const isFaulty =
      budget.timeouts < timeouts || budget.pushes < pushes || budget.deaf < deaf || budget.crashes < crashes;
    if (isFaulty || this.setting.kind.holders(state.held).size > 0) return false;
    const waiters = this.setting.kind.waiters(state.held);
    const isWaiting = state.claims.some(
      ({ ph }, at) =>
        ph === "ask" && waiters.includes(this.places[at]?.owner ?? "") && !isFrozen(state, this.places[at]),
    );
    return isWaiting && state.claims.some(({ keep }, at) => keep?.owed === 1 && !isFrozen(state, this.places[at]));
  }
}
