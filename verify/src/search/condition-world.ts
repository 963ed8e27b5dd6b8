/** A world of claims with a condition: a holder may wait for a signal or send one. */
import { ConditionClients, mayWait, waitOf } from "./condition-client.js";
import { HANDED, INBOX, members } from "./lock-kinds.js";
import type { Add, LockSetting } from "./lock-setting.js";
import type { Claim, ClientRule, LockState, Request } from "./lock-state.js";
import { LockWorld } from "./lock-world.js";
import type { Place } from "./place.js";
import type { Call, Held, Outcome, Server } from "./server.js";

/** The world. */
export class ConditionWorld extends LockWorld<ConditionClients> {
  constructor(setting: LockSetting, server: Server, off: readonly ClientRule[] = []) {
    super(setting, server, off, (places, rules) => new ConditionClients(places, rules));
  }

  /** A waiter without a signal may wait forever, provided that a signal would find it. */
  override isGood(state: LockState): boolean {
    if (super.isGood(state)) return true;
    const waiting = members(state.held, "c");
    return state.claims.every((claim, number) => {
      const { owner, role } = this.places[number] as Place;
      if (claim.ph === "end" || claim.ph === "dead") return true;
      if (role !== "wait") return false;
      if (claim.ph === "idle") return ["end", "dead"].includes(state.claims[number - 1]?.ph ?? "");
      return claim.ph === "ask" && waitOf(claim).owed === 0 && waiting.includes(owner);
    });
  }

  override violation(state: LockState): string | undefined {
    const broken = super.violation(state);
    if (broken !== undefined) return broken;
    const areGone = state.claims.every(({ ph }) => ph === "end" || ph === "idle");
    const isQuiet = state.late === 0 && state.requests.length === 0 && state.pushes.length === 0;
    if (areGone && isQuiet && members(state.held, "c").length > 0) return "ghost: nobody waits for a signal";
    return undefined;
  }

  override callOf(request: Request): Call {
    const [number, verb, token, , more] = request;
    const { owner, role } = this.places[number] as Place;
    const from = this.places[number - 1]?.owner ?? "";
    const keys = ["l", "f", "q", HANDED, "p", "c"];
    switch (verb) {
      case "wait":
        return { script: "condition/wait", keys, args: [from, token, owner, more ?? 0, INBOX] };
      case "quit":
        return { script: "condition/leave", keys, args: [from, token, owner, more ?? 0, INBOX] };
      case "signal":
        return {
          script: "condition/signal",
          keys: ["l", "f", "q", "c", "g"],
          args: [owner, token, 1, role === "signal-all" ? 1000 : 1, INBOX],
        };
      default:
        return super.callOf(request);
    }
  }

  override isWait(request: Request, outcome: Outcome): boolean {
    const { reply } = outcome;
    if (request[1] === "wait") return typeof reply !== "number" && Number(reply[0]) < 2;
    return super.isWait(request, outcome);
  }

  override broken(
    before: LockState,
    next: LockState,
    request: Request,
    outcome: Outcome,
    after: Held,
  ): string | undefined {
    return (
      super.broken(before, next, request, outcome, after) ??
      this.#leftBehind(request, after) ??
      this.#account(before, next, request, after)
    );
  }

  protected override mayBegin(state: LockState, number: number): boolean {
    return this.places[number]?.role !== "wait" && super.mayBegin(state, number);
  }

  protected override addHolderSteps(state: LockState, number: number, name: string, add: Add): void {
    const claim = state.claims[number] as Claim;
    const { role } = this.places[number] as Place;
    const isWaiter = this.places[number + 1]?.role === "wait";
    if (isWaiter && mayWait(claim) && state.claims[number + 1]?.ph === "idle") {
      add(`${name} waits, as ${this.name(number + 1)}`, false, (next) => this.clients.waits(next, number + 1));
    }
    const isSignaller = role === "signal" || role === "signal-all";
    if (isSignaller && mayWait(claim) && claim.call === 0 && waitOf(claim).sig < 2) {
      const again = waitOf(claim).sig === 0 ? "" : " again";
      add(`${name} signals${role === "signal" ? "" : " all"}${again}`, false, (next) =>
        this.clients.signals(next, number),
      );
    }
    if (!this.off.has("wait-ends-the-lease") || !isWaiter || state.claims[number + 1]?.ph === "idle") {
      super.addHolderSteps(state, number, name, add);
    }
  }

  /** A wait that is left must release its lease: the next waiter need not wait until the lease ends. */
  #leftBehind([number, verb, token]: Request, after: Held): string | undefined {
    const from = this.places[number - 1]?.owner ?? "";
    const isHeld = this.setting.kind.holders(after).has(from) && lastToken(after) === token;
    return verb === "quit" && isHeld ? "ghost: it is held by an abandoned wait" : undefined;
  }

  /** Checks that each waiter that may continue had a signal. */
  #account(before: LockState, next: LockState, request: Request, after: Held): string | undefined {
    const [number, verb, token] = request;
    const { owner, role } = this.places[number] as Place;
    const own = waitOf(next.claims[number]);
    const listening = this.listening(next);
    const isThere = (waiter: string): boolean => listening.includes(`${INBOX}${waiter.split("/")[0]}`);
    const waited = members(before.held, "c");
    const waits = members(after, "c");
    const others = waited.filter((waiter) => waiter !== owner && isThere(waiter));
    const moved = others.filter((waiter) => !waits.includes(waiter));
    const from = this.places[number - 1]?.owner ?? "";
    const isFromHeld = this.setting.kind.holders(before.held).has(from) && lastToken(before.held) === token;
    if (verb === "wait" && isFromHeld) own.ran = 1;

    let given = 0;
    let mayBeMore = false;
    if (verb === "signal") {
      const isHeld = this.setting.kind.holders(before.held).has(owner) && lastToken(before.held) === token;
      if (isHeld && own.sent === 0) given = role === "signal" ? 1 : others.length;
      if (isHeld) own.sent = 1;
    } else if (verb === "quit" && !waited.includes(owner)) {
      if (own.owed === 1) given = 1;
      // A leave whose reply was lost may have passed the signal on already; a needless signal is better than none.
      else mayBeMore = own.quits === 1 || own.ran === 0;
      own.owed = 2;
    }
    const expected = Math.min(given, others.length);
    if (moved.length < expected) return "a signal is lost although a client waits for one";
    if (moved.length > expected && !mayBeMore) return "a signal counts twice, or was never sent";
    if (moved.some((waiter, i) => others[i] !== waiter)) return "X3: a later waiter is signalled first";
    return this.#owe(next, moved, after) ?? this.#mislaid(next, waits, isThere);
  }

  #owe(next: LockState, moved: readonly string[], after: Held): string | undefined {
    const queue = members(after, "q");
    for (const waiter of moved) {
      waitOf(next.claims[this.places.findIndex(({ owner }) => owner === waiter)]).owed = 1;
      if (!queue.includes(waiter) && !this.setting.kind.holders(after).has(waiter)) {
        return "a signalled waiter is not in the mutex's queue";
      }
    }
    return undefined;
  }

  /** A signal must find every waiter. */
  #mislaid(next: LockState, waits: readonly string[], isThere: (waiter: string) => boolean): string | undefined {
    for (const [number, claim] of next.claims.entries()) {
      const { owner, role } = this.places[number] as Place;
      if (role !== "wait" || claim.ph !== "ask" || !isThere(owner)) continue;
      const { ran, owed } = waitOf(claim);
      if (ran === 1 && owed === 0 && !waits.includes(owner)) return "a waiter is in no queue";
    }
    return undefined;
  }
}

function lastToken(held: Held): number {
  return Number(held.find(([key]) => key === "f")?.[2] ?? 0);
}
