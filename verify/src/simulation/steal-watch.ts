/**
 * Checks the effects of steals on the server after each script, and whether former holders learn of their loss.
 *
 * X2: the thief's claim is the only holder. S3: a steal ends other holds once, however often its request arrives. F2:
 * its token is higher than all before. X3: it grants nothing to waiters and removes no queue place. S4: each
 * reachable former holder gets a message, and has lost its lease when the message arrives.
 */
import type { Reply } from "holdfast";
import { lockOf } from "./lock-of.js";
import type { Member } from "./member.js";
import type { Call } from "./network.js";
import { membersOf, type Observer, type Seen, textsOf } from "./observer.js";
import type { SimulatedProcess } from "./process.js";
import type { World } from "./world.js";

const OWNER = /^([^/]+)\/(\d+)\/(\d+)\/\d+/;
const UNCONFIRMED = /\/!$/;
/** The time for a message, or for a request and its reply, plus a late timer. */
const TRIP_MS = 80;
/** The factor of the slowest clock of a process. */
const SLOWEST = 1.0101;

interface Ran {
  readonly process: SimulatedProcess;
  readonly call: Call;
  readonly outcome: string | undefined;
  readonly reply: Reply;
}

interface Message {
  readonly process: SimulatedProcess;
  readonly sign: string;
  readonly number: string;
}

/** Watches steals. */
export class StealWatch {
  readonly #world: World<Member>;
  readonly #observer: Observer;
  /** Whether the only faults are lost messages. */
  readonly #isFair: boolean;
  /** Owners that have stolen a lock. */
  readonly #thieves = new Set<string>();
  #ran: Ran[] = [];
  #pushed: Message[] = [];
  #heard: Message[] = [];

  constructor(world: World<Member>, observer: Observer) {
    this.#world = world;
    this.#observer = observer;
    this.#isFair = world.setup.faults.every(({ what }) => what === "drift" || what === "cut-inbox");
    world.onMessage.push((process, message, when) => {
      const [, sign = "", number = ""] = /^([+-])(\d+)/.exec(message) ?? [];
      if (sign === "") return;
      if (when === "pushed") this.#pushed.push({ process, sign, number });
      else if (sign === "-") this.#heard.push({ process, sign, number });
    });
    world.judge.watches.push(() => this.#afterEvent());
  }

  /** Records that a script has run. */
  ran(process: SimulatedProcess, call: Call, outcome: string | undefined, reply: Reply): void {
    this.#ran.push({ process, call, outcome, reply });
  }

  #afterEvent(): void {
    const steals = this.#ran.filter(({ call }) => call.script.name === "web-locks/steal");
    // If several scripts run at one instant, their effects cannot be told apart.
    const isAlone = this.#ran.length === 1;
    for (const steal of steals) {
      if (steal.outcome === "granted") this.#granted(steal, isAlone);
      else if (steal.outcome === "over" && isAlone) this.#over(steal);
    }
    for (const message of this.#heard) this.#told(message);
    this.#ran = [];
    this.#pushed = [];
    this.#heard = [];
  }

  #granted({ process, call, reply }: Ran, isAlone: boolean): void {
    const { judge, recorder } = this.#world;
    const { before, after } = this.#observer;
    const thief = String(call.args[0]);
    const token = Number(reply);
    const had = this.#holders(call, before);
    const has = this.#holders(call, after);
    // The reply was lost, and the request is repeated.
    if (isAlone ? had.has(thief) : this.#thieves.has(thief)) return;
    if (this.#thieves.has(thief))
      judge.violated("S3", `${thief} stole ${lockOf(call)} before, and a late copy of its request stole it again`);
    this.#thieves.add(thief);
    judge.decided("steals");
    const lockName = lockOf(call);
    const earlier = recorder.truth.grants.filter(({ claim, token: own }) => claim.lockName === lockName && own < token);
    const robbed = (isAlone ? [...had.keys()] : earlier.map(({ claim }) => claim.owner)).filter((one) => !has.has(one));
    for (const owner of new Set(robbed)) judge.leases.stolen(owner, { process, lockName, token });
    if (!isAlone) return;
    for (const owner of has.keys())
      if (owner !== thief) judge.violated("X2", `${thief} stole ${lockName}, but ${owner} still holds it`);
    if (!has.has(thief)) judge.violated("S5", `${thief} stole ${lockName}, but does not hold it`);
    const highest = Number(before.get(call.keys[1] ?? "")?.value ?? 0);
    if (token <= highest) judge.violated("F2", `${thief} stole ${lockName} with token ${token}, after ${highest}`);
    this.#checkQueue(thief, call);
    for (const owner of robbed) this.#checkLearns(owner, lockName, token);
  }

  /** X3: the waiters keep their places, except those of clients whose last lease ended unconfirmed. */
  #checkQueue(thief: string, call: Call): void {
    const { judge, clock } = this.#world;
    const { before, after } = this.#observer;
    const endsUs = membersOf(before, call.keys[2]);
    const nowUs = clock.nowUs();
    const lapsed = [...textsOf(before, call.keys[0] ?? "")].filter(
      ([owner, grant]) => UNCONFIRMED.test(grant) && (endsUs.get(owner) ?? 0) <= nowUs,
    );
    const gone = new Set(lapsed.map(([owner]) => clientOf(owner)));
    const are = membersOf(after, call.keys[4]);
    for (const [owner, place] of membersOf(before, call.keys[4])) {
      judge.decided("X3 of a steal");
      if (are.get(owner) !== place && !gone.has(clientOf(owner)))
        judge.violated("X3", `${thief} stole ${lockOf(call)}, and ${owner} lost its place in the queue`);
    }
    if (this.#pushed.some(({ sign }) => sign === "+"))
      judge.violated("X3", `${thief} stole ${lockOf(call)}, and a waiter was granted it in the same step`);
  }

  /**
   * S4: a reachable former holder gets a message. Without other faults it has lost its lease when the message
   * arrives, or, if it is not reachable, by its next renewal.
   */
  #checkLearns(owner: string, lockName: string, token: number): void {
    const { judge, members, nowMs } = this.#world;
    const [, , number, leaseMs] = OWNER.exec(owner) ?? [];
    const member = members.find(({ process }) => !process.isDead && isOf(process, owner));
    if (member === undefined) return;
    const isReached = member.store.isListening && member.store.earCount > 0;
    if (isReached) {
      judge.decided("S4 of former holders");
      const isSent = this.#pushed.some(
        (message) => message.sign === "-" && message.number === number && message.process === member.process,
      );
      if (!isSent) judge.violated("S4", `${lockName} was stolen from ${owner}, which was not notified`);
    }
    const isCut = this.#world.setup.faults.some(
      ({ what, atMs, process }) =>
        what === "cut-inbox" && member.process.name === `p${process}` && atMs >= nowMs && atMs <= nowMs + TRIP_MS,
    );
    if (!this.#isFair || (isReached && isCut)) return;
    const withinMs = TRIP_MS + (isReached ? 0 : this.#renewalMs(owner, Number(leaseMs)));
    this.#world.plan(nowMs + withinMs, "look at a lease of a lock that was stolen", () => {
      for (const { lease, token: own, isOver, isRenewed } of judge.leases.of(owner)) {
        if (own > token || isOver || !(isReached || isRenewed)) continue;
        judge.decided(isReached ? "S4 in time, by message" : "S4 in time, by renewal");
        if (!lease.signal.aborted)
          judge.violated(
            "S4",
            `${lockName} was stolen at ${nowMs.toFixed(1)} ms from ${owner}, but its lease continues`,
          );
      }
    });
  }

  /** The longest time until it renews its lease, which an extension may have lengthened. */
  #renewalMs(owner: string, leaseMs: number): number {
    const { judge, recorder } = this.#world;
    const asked = judge.leases.of(owner).map(({ operation }) => recorder.longestMs(operation));
    return (Math.max(leaseMs, ...asked) / 3) * SLOWEST;
  }

  /** S3: a late copy of a steal ends no hold. */
  #over({ call }: Ran): void {
    const { judge } = this.#world;
    const thief = String(call.args[0]);
    const lockName = lockOf(call);
    judge.decided("late steals");
    if (!this.#thieves.has(thief))
      judge.violated("S5", `${thief} was told that it had stolen ${lockName}, but it had not`);
    const has = this.#holders(call, this.#observer.after);
    for (const owner of this.#holders(call, this.#observer.before).keys())
      if (!has.has(owner)) judge.violated("S3", `a late copy of the steal of ${thief} ended the hold of ${owner}`);
  }

  /** S4: the message has arrived. */
  #told({ process, number }: Message): void {
    const { judge, recorder } = this.#world;
    const claim = recorder.truth.claimOf(process, number);
    if (claim === undefined) return;
    for (const { lease, isOver, lockName } of judge.leases.of(claim.owner)) {
      if (isOver) continue;
      judge.decided("S4 of messages");
      if (!lease.signal.aborted)
        judge.violated(
          "S4",
          `${process.name} was told that its lease of ${lockName} had ended, but the lease continues`,
        );
    }
  }

  /** The holders whose leases have not ended. */
  #holders({ keys }: Call, all: Seen): ReadonlyMap<string, string> {
    const nowUs = this.#world.clock.nowUs();
    const endsUs = membersOf(all, keys[2]);
    const holders = [...textsOf(all, keys[0] ?? "")];
    return new Map(holders.filter(([owner]) => OWNER.test(owner) && (endsUs.get(owner) ?? 0) > nowUs));
  }
}

function clientOf(owner: string): string {
  return owner.split("/")[0] ?? "";
}

function isOf({ name, incarnation }: SimulatedProcess, owner: string): boolean {
  return owner.startsWith(`${name}-${incarnation}-`);
}
