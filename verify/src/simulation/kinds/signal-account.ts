/**
 * L3 of a condition: no signal for a live waiter is lost. L2: a waiter that gets the mutex again is notified.
 *
 * The server moves waiters in one step, so its state before and after the step shows which waiter a signal reached.
 * That waiter then owes a result: it returns with the mutex, or gives up and passes the signal on to the next waiter,
 * or dies. If it still owes a result at the end of the run, the signal was lost.
 */
import type { Reply } from "holdfast";
import type { Call } from "../network.js";
import { membersOf, type Observer } from "../observer.js";
import type { World } from "../world.js";
import { toldByMs } from "./told.js";

/** A signal that has reached a waiter. */
interface Debt {
  readonly lockName: string;
  readonly sinceMs: number;
  /** When the waiter was granted the mutex; it may not know yet. */
  grantedMs?: number;
}

/** How a step of the server changed the waiters for a signal. */
interface Moves {
  readonly moved: readonly string[];
  readonly dropped: readonly string[];
  readonly left: readonly string[];
}

const accounts = new WeakMap<World, SignalAccount>();

/** Tracks the signals of all conditions. */
export class SignalAccount {
  readonly #world: World;
  readonly #debts = new Map<string, Debt>();
  readonly #requests = new Set<string>();
  /** Waiters that have left, according to what a server was told. */
  readonly #left = new Set<string>();
  /**
   * Those of them of which the current server may not know that they left. Signals that reach them are lost without a
   * violation.
   */
  #ghosts: ReadonlySet<string> = new Set();

  /** Use `accountOf`. */
  constructor(world: World) {
    this.#world = world;
  }

  /** Records that the server has executed a signal. */
  signalled(call: Call, lockName: string, reply: Reply): void {
    const [owner, , request, most] = call.args;
    const moves = this.#movesOf(call);
    const key = `${owner} ${request}`;
    const answered = typeof reply === "number" ? Number.NaN : Number(reply[1]);
    if (this.#requests.has(key)) {
      if (moves.moved.length > 0) this.#lost(`a resent signal reached ${moves.moved.join(", ")}`);
      return;
    }
    this.#requests.add(key);
    this.#world.judge.decided("L3");
    if (answered !== moves.moved.length)
      this.#lost(`a signal of ${lockName} reported ${answered} waiters, but reached ${moves.moved.length}`);
    if (moves.moved.length < Number(most) && moves.left.length > 0)
      this.#lost(`a signal of ${lockName} reached ${moves.moved.length}, although ${moves.left.join(", ")} waited`);
    this.#owe(lockName, moves);
  }

  /** Records a script that may have granted the mutex to a signaled waiter. */
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
   * Handles a waiter whose short lease ended before it learned of its grant: it polls again and queues behind the
   * next holder. It had to poll by the time at which it had to return, and then owes nothing for that grant.
   */
  #asked({ script, args }: Call, holder: unknown): void {
    if (script.name !== "condition/wait") return;
    const asker = String(args[2]);
    const debt = this.#debts.get(asker);
    if (debt?.grantedMs === undefined || holder === asker) return;
    this.#checkTold(asker, debt);
    delete debt.grantedMs;
  }

  /** Records that the server has removed a leaving waiter. */
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
      this.#lost(`the signal of ${leaver} was not passed on, although ${moves.left.join(", ")} waited`);
    this.#owe(lockName, moves);
  }

  /** Records that a wait that began at `callMs` returned with the mutex. */
  returned(owner: string, callMs: number): void {
    this.#left.add(owner);
    const debt = this.#debts.get(owner);
    this.#debts.delete(owner);
    if (debt !== undefined) this.#checkTold(owner, debt, callMs);
  }

  /** Handles a failover: the new server may know neither the waiters nor the signaled ones. */
  forgotten(): void {
    this.#debts.clear();
    this.#ghosts = new Set(this.#left);
  }

  /** Checks the remaining debts at the end of the run. */
  finish(): void {
    for (const [owner, { lockName, sinceMs }] of this.#debts) {
      if (this.#memberOf(owner) === undefined) continue;
      this.#lost(`the signal that reached ${owner} on ${lockName} at ${sinceMs.toFixed(1)} ms woke no waiter`);
    }
  }

  #owe(lockName: string, { moved, dropped }: Moves): void {
    for (const owner of moved)
      if (!this.#ghosts.has(owner)) this.#debts.set(owner, { lockName, sinceMs: this.#world.nowMs });
    for (const owner of dropped)
      if (this.#isReachable(owner)) this.#lost(`${owner} waited on ${lockName} and could be reached, but was dropped`);
  }

  /** L2: a wait that ends without the mutex must not have been granted it long ago: its waiter would know. */
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
      `${owner} had ${lockName} since ${grantedMs.toFixed(1)} ms, but was not notified for ${tookMs} ms`,
    );
  }

  get #observer(): Observer {
    const observer = this.#world.recorder.witness?.observer;
    if (observer === undefined) throw new Error("there is no observer of the server");
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

  /** Reports a lost signal, unless the server has lost its memory. */
  #lost(text: string): void {
    if (this.#world.judge.lostAt("exclusion") === Number.POSITIVE_INFINITY) this.#world.judge.violated("L3", text);
  }
}

/** The signal account of a world. */
export function accountOf(world: World): SignalAccount {
  const account = accounts.get(world) ?? new SignalAccount(world);
  accounts.set(world, account);
  return account;
}
