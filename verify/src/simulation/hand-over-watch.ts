/**
 * Checks grants by message (docs/adr/130) on the server, before and after each script.
 *
 * - S1: a grant by message lasts for the hand-off that the claim names, any other grant for the whole lease.
 * - L6: a claim that is confirmed or released is no longer marked as unconfirmed. When a lease ends with the mark,
 *   its client loses its other queue places in the same step, so a frozen process costs the others one hand-off in
 *   total, not one per claim.
 * - L2: such a client is notified, and is queued again with its next poll.
 */
import type { Reply } from "holdfast";
import { labelOf } from "./crowds.js";
import { toldByMs } from "./kinds/told.js";
import type { Member } from "./member.js";
import type { Call } from "./network.js";
import { membersOf, type Observer, type Seen, textsOf } from "./observer.js";
import { handOffMsIn, labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";
import type { View } from "./view.js";
import type { World } from "./world.js";

const MUTEX = /^hf:(?:mutex|election):\{[^}]*\}$/;
const PERMITS = /^hf:(?:semaphore|read-write-lock):\{[^}]*\}$/;
const OWNER = /^([^/]+)\/(\d+)\/(\d+)\/\d+/;
/** The end of a lease by message is rounded to whole milliseconds. */
const ROUNDED_MS = 1.1;
/** The maximum number of entries that one script removes. */
const LOST_MAX = 1_000;
/** The longest time until a waiter asks again, with the slowest clock and a request in flight. */
const POLL_MS = 3_200;
/** The server counts whole milliseconds, and so do the values read from it. */
const SLACK_MS = 2.1;
const UNCONFIRMED = /\/!$/;

interface Ran {
  readonly call: Call;
  readonly outcome: string | undefined;
  readonly reply: Reply;
}

interface Message {
  readonly process: SimulatedProcess;
  readonly sign: string;
  readonly number: string;
}

/** The state of a lock before and after a script. */
interface Step extends Ran {
  readonly lock: string;
  /** The claims that the script was sent for, with their lease lengths. */
  readonly own: ReadonlyMap<string, number>;
}

/** Checks each script's effect on grants by message. */
export class HandOverWatch {
  readonly #world: World<Member>;
  readonly #observer: Observer;
  readonly #isJudging: boolean;
  readonly #isFair: boolean;
  #ran: Ran[] = [];
  #messages: Message[] = [];
  readonly #lostAtMs = new Map<string, number>();
  /** The number of grants of each lock. */
  readonly #grants = new Map<string, number>();

  constructor(world: World<Member>, observer: Observer) {
    this.#world = world;
    this.#observer = observer;
    const { faults, profile } = world.setup;
    // With clock faults, an ended lease may become valid again although it was already treated as ended.
    this.#isJudging = !faults.some(({ what }) => what.endsWith("server-clock"));
    this.#isFair = profile === "stalls" || profile === "none";
    world.onMessage.push((process, message, when) => {
      const [, sign = "", number = ""] = /^([+~])(\d+)/.exec(message) ?? [];
      if (when === "pushed" && sign !== "") this.#messages.push({ process, sign, number });
    });
    world.judge.watches.push(() => this.#afterEvent());
  }

  /** Records that a script has run. */
  ran(call: Call, outcome: string | undefined, reply: Reply): void {
    this.#ran.push({ call, outcome, reply });
  }

  /** S1: no client is told a lease that is longer than the server's. */
  compare({ own: { owner }, process, lockName, mayBeTaken }: View, leftMs: number): void {
    if (mayBeTaken) return;
    const { judge, recorder } = this.#world;
    const restMs = this.#observer.restMs(recorder.truth.keysOf(owner), owner);
    judge.decided("leases compared");
    if (restMs < leftMs - SLACK_MS)
      judge.note(
        "S1",
        `${process.name}: the lease of ${lockName} is valid for ${leftMs.toFixed(1)} ms, but lasts ${restMs.toFixed(1)} ms on the server`,
      );
  }

  #afterEvent(): void {
    const [ran, another] = this.#ran;
    if (ran !== undefined) {
      // After a stopped server, all requests run at the same instant, so the order within it is unknown.
      const isSeen = another === undefined && this.#world.judge.lostAt("exclusion") === Number.POSITIVE_INFINITY;
      if (isSeen && this.#isJudging) this.#look(ran);
      this.#ran = [];
    }
    this.#messages = [];
  }

  #look(ran: Ran): void {
    // In protocol 0, a hand-off lasts for the whole lease, and scripts neither set nor read marks.
    if (this.#world.oldScripts.has(ran.call.script)) return;
    const own = ownOf(ran.call);
    for (const lock of new Set(ran.call.keys)) {
      if (MUTEX.test(lock)) this.#lookAtMutex({ ...ran, lock, own });
      else if (PERMITS.test(lock)) this.#lookAtPermits({ ...ran, lock, own });
    }
    this.#asked(ran, own);
  }

  #lookAtMutex(step: Step): void {
    const { lock, own, outcome, call } = step;
    const { before, after, nowMs } = this.#observer;
    const holder = textOf(after, lock);
    const last = textOf(before, lock);
    const mark = textOf(after, `${lock}:handed`);
    const restMs = (after.get(lock)?.endsAtMs ?? Number.NaN) - nowMs;
    const isHandedOver = holder !== undefined && this.#isTold("+", holder);
    const isAnswered = holder !== undefined && own.has(holder) && !isHandedOver;
    if (isHandedOver) {
      this.#granted(lock, holder);
      this.#checkLength(lock, holder, restMs);
      const isMarked = mark !== undefined && holder.startsWith(`${mark}/`);
      if (isMarked !== (handOffMsIn(holder) !== undefined))
        this.#violated("L6", `${holder} was granted ${lock} by message, and the mark is ${mark}`);
    } else if (isAnswered && (outcome === "granted" || outcome === "extended" || outcome === "adopted")) {
      if (outcome !== "extended") this.#granted(lock, holder);
      const leaseMs = own.get(holder) ?? 0;
      if (restMs < leaseMs - ROUNDED_MS)
        this.#violated(
          "S1",
          `${holder} has ${lock} for ${leaseMs} ms by an answer, and for ${restMs} ms on the server`,
        );
      if (mark !== undefined)
        this.#violated("L6", `${call.script.name} of ${holder} left the mark of ${mark} on ${lock}`);
    }
    if (last !== undefined && holder === undefined && mark !== undefined)
      this.#violated("L6", `${call.script.name} ended the hold of ${last}, and left the mark of ${mark} on ${lock}`);
    const gone = textOf(before, `${lock}:handed`);
    if (last === undefined && gone !== undefined && call.script.name === "mutex/acquire")
      this.#lost(step, new Set([gone]), `${lock}:queue`, new Set(holder === undefined ? [] : [holder]));
  }

  #lookAtPermits(step: Step): void {
    const { lock, own, outcome, call, reply } = step;
    const { before, after } = this.#observer;
    const nowUs = this.#world.clock.nowUs();
    const were = textsOf(before, lock);
    const are = textsOf(after, lock);
    const endsUs = membersOf(after, `${lock}:holders`);
    const granted = new Set<string>();
    for (const [owner, grant] of are) {
      if (!OWNER.test(owner)) continue;
      const isMarked = UNCONFIRMED.test(grant);
      const restMs = ((endsUs.get(owner) ?? Number.NaN) - nowUs) / 1_000;
      if (tokenIn(were.get(owner)) !== tokenIn(grant) && this.#isTold("+", owner)) {
        granted.add(owner);
        this.#granted(lock, owner);
        this.#checkLength(lock, owner, restMs);
        if (isMarked !== (handOffMsIn(owner) !== undefined))
          this.#violated("L6", `${owner} was granted ${lock} by message, as ${grant}`);
      } else if (own.has(owner) && (outcome === "granted" || outcome === "extended" || outcome === "adopted")) {
        const leaseMs = own.get(owner) ?? 0;
        if (restMs < leaseMs - ROUNDED_MS)
          this.#violated(
            "S1",
            `${owner} has ${lock} for ${leaseMs} ms by an answer, and for ${restMs} ms on the server`,
          );
        if (isMarked) this.#violated("L6", `${call.script.name} of ${owner} left it unconfirmed in ${lock}`);
      } else if (outcome === "confirmed" && isMarked && confirms(call, reply, owner))
        this.#violated("L6", `${call.script.name} left ${owner} unconfirmed in ${lock}`);
    }
    const ended = [...membersOf(before, `${lock}:holders`)].filter(
      ([owner, endUs]) => endUs <= nowUs && UNCONFIRMED.test(were.get(owner) ?? "") && !are.has(owner),
    );
    if (ended.length === 0) return;
    const gone = new Set(ended.map(([owner]) => owner.split("/")[0] ?? ""));
    this.#lost(step, gone, `${lock}:queue`, granted);
  }

  /** A lease by message lasts for the hand-off, or the whole length if the claim names none. */
  #checkLength(lock: string, owner: string, restMs: number): void {
    const leaseMs = Number(OWNER.exec(owner)?.[3]);
    const wantedMs = handOffMsIn(owner) ?? leaseMs;
    this.#world.judge.decided(wantedMs < leaseMs ? "short hand-offs" : "hand-offs");
    if (restMs < wantedMs - ROUNDED_MS)
      this.#violated("S1", `${owner} relies on ${wantedMs} ms of ${lock}, and has ${restMs} ms on the server`);
    if (restMs > wantedMs + ROUNDED_MS)
      this.#violated("L6", `${owner} has not confirmed ${lock}, and has it for ${restMs} ms instead of ${wantedMs}`);
  }

  /** Clients whose last lease ended unconfirmed have no queue places left, except the one that was just requested. */
  #lost({ lock, own }: Step, gone: ReadonlySet<string>, queue: string, granted: ReadonlySet<string>): void {
    const { judge, nowMs } = this.#world;
    const were = membersOf(this.#observer.before, queue);
    const are = membersOf(this.#observer.after, queue);
    let most = LOST_MAX;
    for (const [owner, place] of were) {
      if (own.has(owner) || !gone.has(owner.split("/")[0] ?? "") || most === 0) continue;
      most -= 1;
      judge.decided("places lost");
      if (are.get(owner) === place || granted.has(owner)) {
        const what = granted.has(owner) ? "is granted" : "keeps its place in";
        this.#violated("L6", `the last lease of its client ended unconfirmed, and ${owner} ${what} ${lock}`);
        continue;
      }
      this.#lostAtMs.set(owner, nowMs);
      const member = this.#memberOf(owner);
      const canHear = member?.store.isListening === true && member.store.earCount > 0;
      if (canHear && !this.#isTold("~", owner))
        this.#violated("L2", `${owner} lost its place in ${lock} and was not notified`);
    }
  }

  /** A waiter that has lost its place gets a new one when it polls, and it polls when it is notified. */
  #asked({ call, outcome }: Ran, own: ReadonlyMap<string, number>): void {
    if (!call.script.name.endsWith("/acquire")) return;
    const { judge, nowMs } = this.#world;
    for (const owner of own.keys()) {
      const lostAtMs = this.#lostAtMs.get(owner);
      if (lostAtMs === undefined || lostAtMs === nowMs) continue;
      this.#lostAtMs.delete(owner);
      const process = this.#memberOf(owner)?.process;
      if (process === undefined) continue;
      judge.decided("places taken again");
      const isQueuing = String(call.args[call.script.args.indexOf("enqueue")]) !== "0";
      // A claim for more permits than exist after a resize cannot be queued: its caller gets an error.
      // kinds/semaphore.ts checks that there really are too few permits.
      if (isQueuing && outcome !== "waiting" && outcome !== "granted" && outcome !== "heavy")
        this.#violated("L2", `${owner} had lost its place, and did not get one when it asked again`);
      const dueMs = toldByMs(this.#world, { process, callMs: lostAtMs, decidedMs: lostAtMs });
      if (nowMs > Math.max(dueMs, process.resumedAtMs + dueMs - lostAtMs))
        this.#violated(
          "L2",
          `${owner} lost its place at ${lostAtMs.toFixed(1)} ms, and asked at ${nowMs.toFixed(1)} ms`,
        );
    }
  }

  /** L6: behind a frozen client, another client is granted within one hand-off and one poll. */
  #granted(lock: string, owner: string): void {
    const nth = (this.#grants.get(lock) ?? 0) + 1;
    this.#grants.set(lock, nth);
    const process = this.#memberOf(owner)?.process;
    const { nowMs } = this.#world;
    if (!this.#isFair || !MUTEX.test(lock) || process?.isFrozen !== true) return;
    const withinMs = (handOffMsIn(owner) ?? Number(OWNER.exec(owner)?.[3])) + POLL_MS;
    this.#world.plan(nowMs + withinMs, "check behind a frozen client", () => {
      if (!process.isFrozen || process.resumedAtMs >= nowMs || process.isDead) return;
      this.#world.judge.decided("L6 behind a frozen client");
      if (this.#grants.get(lock) !== nth) return;
      const waiter = this.#waiterOf(lock, nowMs);
      if (waiter !== undefined)
        this.#violated(
          "L6",
          `${owner} was granted ${lock} at ${nowMs.toFixed(1)} ms and is frozen; no other client was since, although ${waiter} waits`,
        );
    });
  }

  /** A waiter that has waited since then and could send requests the whole time. */
  #waiterOf(lock: string, sinceMs: number): string | undefined {
    const waiting = new Set(
      this.#world.judge.open.filter(({ callMs }) => callMs < sinceMs).map(({ session }) => labelOf(session)),
    );
    return [...membersOf(this.#observer.after, `${lock}:queue`).keys()].find((owner) => {
      const process = this.#memberOf(owner)?.process;
      const isThere = process !== undefined && !process.isFrozen && process.resumedAtMs < sinceMs;
      return isThere && waiting.has(labelIn(owner));
    });
  }

  #isTold(sign: string, owner: string): boolean {
    const number = OWNER.exec(owner)?.[2];
    return this.#messages.some(
      (message) => message.sign === sign && message.number === number && isOf(message.process, owner),
    );
  }

  #memberOf(owner: string): Member | undefined {
    return this.#world.members.find(({ process }) => !process.isDead && isOf(process, owner));
  }

  #violated(property: string, text: string): void {
    // Old scripts do not change the marks of other clients.
    if (property !== "S1" && this.#world.setup.oldProcess !== undefined) return;
    this.#world.judge.violated(property, text);
  }
}

function isOf({ name, incarnation }: SimulatedProcess, owner: string): boolean {
  return owner.startsWith(`${name}-${incarnation}-`);
}

function ownOf({ script, args }: Call): ReadonlyMap<string, number> {
  const field = ["to", "owner", "owners"].find((name) => script.args.includes(name));
  const leaseMs = Number(args[script.args.indexOf("leaseMs")] ?? 0);
  const owners = field === undefined ? [] : String(args[script.args.indexOf(field)]).split(" ");
  return new Map(owners.map((owner) => [owner, leaseMs]));
}

/** Whether that reply confirms this owner. */
function confirms({ args }: Call, reply: Reply, owner: string): boolean {
  const place = String(args[0]).split(" ").indexOf(owner) / 3;
  return (
    place >= 0 &&
    typeof reply !== "number" &&
    !reply
      .slice(1)
      .map(Number)
      .includes(place + 1)
  );
}

function textOf(all: Seen, key: string): string | undefined {
  const value = all.get(key)?.value;
  return typeof value === "string" ? value : undefined;
}

function tokenIn(grant: string | undefined): string | undefined {
  return grant?.split("/")[1];
}
