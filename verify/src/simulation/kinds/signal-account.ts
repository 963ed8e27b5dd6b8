/**
 * L3 of a condition: no signal is lost that a live waiter waits for. L2: a waiter that gets the mutex again is notified.
 *
 * The server moves waiters in one step, so what it held before and after tells whom a signal reached. From then on that
 * waiter owes something for it: it returns with the mutex, or it gives up and hands the signal to the next in the same
 * way, or it dies. What it still owes when all is over was lost.
 */
import type { Reply } from "holdfast";
import type { Call } from "../network.js";
import { membersOf, type Observer } from "../observer.js";
import type { World } from "../world.js";
import { toldByMs } from "./told.js";

/** One signal that has reached a waiter. */
interface Debt {
  readonly lockName: string;
  readonly sinceMs: number;
  /** When the waiter was given the mutex, of which it may not know yet. */
  grantedMs?: number;
}

/** What a step of the server did to those who wait for a signal. */
interface Moves {
  readonly moved: readonly string[];
  readonly dropped: readonly string[];
  readonly left: readonly string[];
}

const accounts = new WeakMap<World, SignalAccount>();

/** See the file header. */
export class SignalAccount {
  readonly #world: World;
  readonly #debts = new Map<string, Debt>();
  readonly #requests = new Set<string>();
  /** Who waits no longer, by what a server was told. */
  readonly #left = new Set<string>();
  /** Those of them of whom the present server may not have been told: what reaches them reaches nobody. */
  #ghosts: ReadonlySet<string> = new Set();

  /** Use `accountOf`. */
  constructor(world: World) {
    this.#world = world;
  }

  /** The server has carried out a signal. */
  signalled(call: Call, lockName: string, reply: Reply): void {
    const [owner, , request, most] = call.args;
    const moves = this.#movesOf(call);
    const key = `${owner} ${request}`;
    const answered = typeof reply === "number" ? Number.NaN : Number(reply[1]);
    if (this.#requests.has(key)) {
      if (moves.moved.length > 0) this.#lost(`a signal that was sent again reached ${moves.moved.join(", ")}`);
      return;
    }
    this.#requests.add(key);
    this.#world.judge.decided("L3");
    if (answered !== moves.moved.length)
      this.#lost(`a signal of ${lockName} is said to have woken ${answered}, and reached ${moves.moved.length}`);
    if (moves.moved.length < Number(most) && moves.left.length > 0)
      this.#lost(`a signal of ${lockName} reached ${moves.moved.length}, and ${moves.left.join(", ")} waited`);
    this.#owe(lockName, moves);
  }

  /** A script has run that may have given the mutex to a signalled waiter. */
  ran(call: Call): void {
    const {
      keys: [lock = ""],
    } = call;
    const holder = this.#observer.after.get(lock)?.value;
    this.#asked(call, holder);
    const debt = typeof holder === "string" ? this.#debts.get(holder) : undefined;
    if (debt !== undefined) debt.grantedMs ??= this.#world.nowMs;
  }

  /**
   * A waiter whose short lease ended before it heard of its grant asks again, and queues behind the next holder. It had to
   * ask by the same time at which it had to return; from then on it owes nothing for that grant.
   */
  #asked({ script, args }: Call, holder: unknown): void {
    if (script.name !== "condition/wait") return;
    const asker = String(args[2]);
    const debt = this.#debts.get(asker);
    if (debt?.grantedMs === undefined || holder === asker) return;
    this.#checkTold(asker, debt);
    delete debt.grantedMs;
  }

  /** The server has let a waiter leave. */
  left(call: Call, lockName: string, outcome: string | undefined): void {
    const [, , leaver = "", entered] = call.args.map(String);
    this.#left.add(leaver);
    const debt = this.#debts.get(leaver);
    if (debt === undefined || outcome !== "passed" || entered === "2") return;
    this.#debts.delete(leaver);
    this.#checkTold(leaver, debt);
    this.#world.judge.decided("L3");
    const moves = this.#movesOf(call, leaver);
    if (moves.moved.length === 0 && moves.left.length > 0)
      this.#lost(`the signal of ${leaver} was passed on to nobody, and ${moves.left.join(", ")} waited`);
    this.#owe(lockName, moves);
  }

  /** A wait that began at `callMs` returned with the mutex. */
  returned(owner: string, callMs: number): void {
    this.#left.add(owner);
    const debt = this.#debts.get(owner);
    this.#debts.delete(owner);
    if (debt !== undefined) this.#checkTold(owner, debt, callMs);
  }

  /** Another server takes over, which may know neither who waited nor whom a signal has reached. */
  forgotten(): void {
    this.#debts.clear();
    this.#ghosts = new Set(this.#left);
  }

  /** All is over. */
  finish(): void {
    for (const [owner, { lockName, sinceMs }] of this.#debts) {
      if (this.#memberOf(owner) === undefined) continue;
      this.#lost(`the signal that reached ${owner} on ${lockName} at ${sinceMs.toFixed(1)} ms woke nobody`);
    }
  }

  #owe(lockName: string, { moved, dropped }: Moves): void {
    for (const owner of moved)
      if (!this.#ghosts.has(owner)) this.#debts.set(owner, { lockName, sinceMs: this.#world.nowMs });
    for (const owner of dropped)
      if (this.#isReachable(owner)) this.#lost(`${owner} waited on ${lockName} and could be reached, and was dropped`);
  }

  /** L2: whose wait ends was not given the mutex so long ago that it had to know. */
  #checkTold(owner: string, { lockName, grantedMs }: Debt, callMs = Number.NEGATIVE_INFINITY): void {
    const world = this.#world;
    const process = this.#memberOf(owner)?.process;
    if (process === undefined || grantedMs === undefined) return;
    if (world.judge.lostAt("exclusion") < Number.POSITIVE_INFINITY) return;
    world.judge.decided("L2 of a condition");
    if (world.nowMs <= toldByMs(world, { process, callMs, decidedMs: grantedMs })) return;
    const tookMs = (world.nowMs - grantedMs).toFixed(1);
    world.judge.violated(
      "L2",
      `${owner} had ${lockName} since ${grantedMs.toFixed(1)} ms, and heard nothing for ${tookMs} ms`,
    );
  }

  get #observer(): Observer {
    const observer = this.#world.recorder.witness?.observer;
    if (observer === undefined) throw new Error("nobody observes the server");
    return observer;
  }

  #movesOf({ script, keys }: Call, leaver?: string): Moves {
    const [lock = "", , queue] = keys;
    const condition = keys[script.keys.indexOf("condition")];
    const observer = this.#observer;
    const after = membersOf(observer.after, condition);
    const queued = membersOf(observer.after, queue);
    const holder = observer.after.get(lock)?.value;
    const gone = [...membersOf(observer.before, condition).keys()].filter(
      (owner) => !after.has(owner) && owner !== leaver,
    );
    const moved = gone.filter((owner) => queued.has(owner) || owner === holder);
    return { moved, dropped: gone.filter((owner) => !moved.includes(owner)), left: [...after.keys()] };
  }

  #isReachable(owner: string): boolean {
    return this.#memberOf(owner)?.store.isListening === true;
  }

  #memberOf(owner: string): World["members"][number] | undefined {
    return this.#world.members.find(
      ({ process: { name, incarnation, isDead } }) => !isDead && owner.startsWith(`${name}-${incarnation}-`),
    );
  }

  /** A server that forgets may lose a signal too. */
  #lost(text: string): void {
    if (this.#world.judge.lostAt("exclusion") === Number.POSITIVE_INFINITY) this.#world.judge.violated("L3", text);
  }
}

/** The account of the conditions of a world. */
export function accountOf(world: World): SignalAccount {
  const account = accounts.get(world) ?? new SignalAccount(world);
  accounts.set(world, account);
  return account;
}
