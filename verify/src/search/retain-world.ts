/**
 * A world with a mutex whose process may keep a claim after its release: `holdfast/retain`. Other processes queue, try
 * once, or pause the mutex.
 *
 * A kept claim holds the lock on the server although no caller uses it. The world checks three things. While a lease
 * reuses the claim, no other claim holds the lock. The token of such a lease is not lower than an earlier token of
 * another process. When another claim asks for the lock, the kept claim is released before the clock advances, unless
 * the recall was lost or its process is frozen or dead.
 */
import { LEASE_TICKS, TICK_MS } from "./canonical.js";
import { NOT_KEPT } from "./encoding.js";
import { LockClients } from "./lock-client.js";
import { INBOX, tokensOf } from "./lock-kinds.js";
import type { Add, LockSetting } from "./lock-setting.js";
import {
  type Claim,
  type ClientRule,
  idleClaim,
  type KeepPart,
  type LockState,
  older,
  type Push,
  type Reply,
  type Request,
  type Verb,
} from "./lock-state.js";
import { LockWorld } from "./lock-world.js";
import { isFrozen, isValid, type Place } from "./place.js";
import type { Call, Held, Outcome, Server } from "./server.js";

/** A pause ends with the tick in which it begins. */
const PAUSE_MS = TICK_MS * 0.4;

function keepOf(claim: Claim | undefined): KeepPart {
  if (claim?.keep === undefined) throw new Error("a claim of this world must know whether it may be kept");
  return claim.keep;
}

/** Clients that may keep a claim. */
class RetainClients extends LockClients {
  override idle(_place: Place): Claim {
    return { ...idleClaim(), keep: { ...NOT_KEPT } };
  }

  override send(next: LockState, number: number, verb: Verb): void {
    const isPause = verb === "acquire" && this.places[number]?.role === "pause";
    super.send(next, number, isPause ? "pause" : verb);
    // A claim that was renewed or confirmed is not kept.
    if (verb === "extend") keepOf(next.claims[number]).may = 0;
  }

  override answered(next: LockState, reply: Reply): string | undefined {
    const [number, code] = reply;
    const claim = next.claims[number] as Claim;
    const { role } = this.places[number] as Place;
    if (claim.ph === "ask" && code <= 1 && (role === "try" || role === "pause")) {
      this.end(claim);
      return undefined;
    }
    // It was granted by the reply to its only request, and no message told it to ask again.
    const isPlain = (claim.s === 0 && claim.un === 0 && claim.aa === 0) || this.off.has("asked-once");
    const isGranted = claim.ph === "ask" && code > 1;
    const broken = super.answered(next, reply);
    if (isGranted && claim.ph === "held" && role === "retain" && isPlain) keepOf(claim).may = 1;
    return broken;
  }

  override failed(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const isTry = claim.ph === "ask" && this.places[number]?.role === "try";
    super.failed(next, number);
    if (isTry) this.depart(next, number, 1);
  }

  override pushed(next: LockState, push: Push, isFirst = false): string | undefined {
    const [number, token] = push;
    const claim = next.claims[number] as Claim;
    if (token === 0 && claim.ph === "held" && !this.off.has("recall-in-use")) keepOf(claim).may = 0;
    if (token === 0 && claim.ph === "kept" && !this.off.has("recall-gives-back")) this.givesBack(next, number);
    const broken = super.pushed(next, push, isFirst);
    if (this.off.has("asked-once") && token > 0 && claim.ph === "held") keepOf(claim).may = 1;
    return broken;
  }

  /** A new connection to the inbox counts as a recall. */
  override hearsAgain(next: LockState, client: number): void {
    super.hearsAgain(next, client);
    for (const [number, place] of this.places.entries()) {
      if (place.client !== client) continue;
      keepOf(next.claims[number]).may = 0;
      if (next.claims[number]?.ph === "kept") this.givesBack(next, number);
    }
  }

  override letGo(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    if (claim.call === 0 && keepOf(claim).may === 1 && this.isReusable(claim)) claim.ph = "kept";
    else super.letGo(next, number);
  }

  /** The next caller of the process holds with the kept claim. */
  reuses(next: LockState, number: number): string | undefined {
    const claim = next.claims[number] as Claim;
    next.budget.entries -= 1;
    if (claim.ph === "dep") this.abandon(next, number);
    claim.ph = "held";
    keepOf(claim).was = 0;
    const isOld = next.claims.some(({ tok }) => tok > claim.tok);
    return isOld ? "F2: a later lease has a lower token" : undefined;
  }

  givesBack(next: LockState, number: number): void {
    const claim = next.claims[number] as Claim;
    const { set } = claim;
    this.depart(next, number, 0);
    Object.assign(keepOf(claim), { may: 0, was: 1 });
    if (this.off.has("recalled-is-over")) claim.set = set;
  }

  /** Whether more than half of the lease is left. */
  isReusable(claim: Claim): boolean {
    return claim.set < LEASE_TICKS / 2;
  }

  override crash(next: LockState, client: number): void {
    super.crash(next, client);
    for (const [number, place] of this.places.entries()) {
      if (place.client === client) (next.claims[number] as Claim).keep = { ...NOT_KEPT };
    }
  }

  override end(claim: Claim): void {
    super.end(claim);
    claim.keep = { ...NOT_KEPT };
  }

  override tick(next: LockState): void {
    super.tick(next);
    for (const claim of next.claims) if (claim.ph === "kept") claim.set = older(claim.set);
  }
}

/** The world. */
export class RetainWorld extends LockWorld<RetainClients> {
  constructor(setting: LockSetting, server: Server, off: readonly ClientRule[] = []) {
    super(setting, server, off, (places, rules) => new RetainClients(places, rules));
  }

  override callOf(request: Request, state: LockState): Call {
    const [number, verb, token] = request;
    const { owner, weight, role } = this.places[number] as Place;
    if (verb === "pause") {
      const untilMs = Math.floor(state.t / 1_000) + PAUSE_MS;
      return { script: "pausing/pause", keys: ["l", "f", "q", "d", "p", "r"], args: [owner, untilMs, "b/w", INBOX] };
    }
    return this.setting.kind.call(verb, owner, weight, token, this.setting.enqueue && role !== "try");
  }

  override replyOf(request: Request, outcome: Outcome, slow: number): Reply {
    const [number, verb] = request;
    const { owner, role } = this.places[number] as Place;
    const reply = super.replyOf(request, outcome, slow);
    // A client keeps the last of the tokens that its grant reserves.
    if (verb === "acquire" && role === "retain" && reply[1] > 1) reply[1] += tokensOf(owner) - 1;
    return reply;
  }

  override broken(
    before: LockState,
    next: LockState,
    request: Request,
    outcome: Outcome,
    after: Held,
  ): string | undefined {
    const [number, verb] = request;
    const wants = verb === "pause" || verb === "acquire";
    const [holder] = this.setting.kind.holders(after).keys();
    for (const [other, { owner }] of this.places.entries()) {
      const { ph } = next.claims[other] as Claim;
      const isOther = owner === holder && other !== number && ["ask", "held", "kept"].includes(ph);
      if (wants && isOther) keepOf(next.claims[other]).owed = 1;
    }
    // The value of a pause contains a time.
    next.held = next.held.map((entry) => (entry[0] === "p" ? (["p", "string", "pause", PAUSE_MS] as const) : entry));
    return super.broken(before, next, request, outcome, after);
  }

  override async steps(state: LockState): ReturnType<LockWorld["steps"]> {
    const unheard = this.#unheard(state);
    const steps = await super.steps(state);
    if (unheard === undefined) return steps;
    const violation = "L6: a claim that nobody uses is kept although another claim has asked for the lock";
    return steps.map((step) => (step.next.t > state.t + 100_000 ? { ...step, violation } : step));
  }

  /**
   * A kept claim that holds the lock although another claim has asked for it and its process could have received every
   * message. A kept claim whose lease has ended holds nothing.
   */
  #unheard(state: LockState): number | undefined {
    const { pushes = 0, deaf = 0 } = this.setting.budget;
    if (state.budget.pushes < pushes || state.budget.deaf < deaf) return undefined;
    const waiters = this.setting.kind.waiters(state.held);
    const [holder] = this.setting.kind.holders(state.held).keys();
    const number = state.claims.findIndex(
      (claim, at) =>
        claim.ph === "kept" &&
        this.places[at]?.owner === holder &&
        (keepOf(claim).owed === 1 || waiters.length > 0) &&
        !isFrozen(state, this.places[at]) &&
        !state.pushes.some(([to]) => to === at),
    );
    return number < 0 ? undefined : number;
  }

  protected override addClientSteps(state: LockState, add: Add): void {
    super.addClientSteps(state, add);
    for (const [number, claim] of state.claims.entries()) {
      if (isFrozen(state, this.places[number])) continue;
      const name = this.name(number);
      const isKept = claim.ph === "kept";
      const isOver = !this.clients.isReusable(claim);
      const isTaken = this.off.has("recalled-is-over") && claim.ph === "dep" && keepOf(claim).was === 1;
      const mayReuse = isTaken ? isValid(claim) : isKept && (!isOver || this.off.has("reuse-by-the-clock"));
      if (mayReuse && state.budget.entries > 0) {
        add(`${name} is reused`, true, (next) => this.clients.reuses(next, number));
      }
      if (isKept && isOver) add(`${name} is given back`, false, (next) => this.clients.givesBack(next, number));
    }
  }
}
