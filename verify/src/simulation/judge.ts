/**
 * Watches a run from outside and decides the properties while it happens.
 *
 * It knows true time and asks every lease, at the instants that matter, what that lease thinks of itself. Since a
 * lease that was over is never valid again (checked too), it is enough to look when somebody is granted: two leases
 * that are ever valid at the same time are so at the instant at which the later one begins.
 */
import type { Lease } from "holdfast";
import type { Arguments, Outcome, Refusal } from "../history/index.js";
import type { Attempt } from "./attempt.js";
import type { Network } from "./messages.js";
import { FifoOrder } from "./order.js";
import type { Session } from "./plan.js";
import { type SimulatedProcess, TIMER_LATE_MS } from "./process.js";
import { type Draft, historyName, type Recorder } from "./recorder.js";
import { TokenOrder } from "./tokens.js";

/** Something that must not happen. */
export interface Violation {
  /** Id of the property, as the reference names it. */
  readonly property: string;
  readonly atMs: number;
  readonly text: string;
}

/** A lease that somebody has, or had. */
export interface View {
  readonly attempt: Attempt | undefined;
  readonly process: SimulatedProcess;
  readonly lease: Lease;
  /** Of the acquire whose grant it goes on with, if it was adopted. */
  readonly grantId?: number;
  /** The record of the acquire that it comes from. */
  readonly operation: Draft;
  /** When something gave it back that is not the release of this lease, such as that of another that shares its hold. */
  givenBackMs?: number;
  /** The lease itself; of several that count as one, the one of this lock. */
  readonly own: Lease;
  readonly lockName: string;
  token: number;
  readonly limit: number;
  weight: number;
  /** Its holder has ended it, or somebody has by force: from then on others may hold. */
  isOver: boolean;
  /** Somebody has tried to end it by force, so it may be told that it is gone. */
  mayBeTaken: boolean;
  readonly grantedMs: number;
  /** It said that it was over. */
  wasFalse: boolean;
  /** If it says nothing else before, it must have told its loss by then. */
  lossDueMs: number;
}

/** Properties that a fault of this run has taken the ground from. */
export type Ground = "exclusion" | "tokens";

/** A timer counts whole milliseconds, of a clock that may be slow. */
const SLACK_MS = TIMER_LATE_MS + 1.1;
/** Where its clocks came apart a lease finds its end by looking, so often by its own monotonic clock. */
const LOOK_MS = 1_000;

/** See the file header. */
export class Judge {
  readonly violations: Violation[] = [];
  /** What happened after the ground for it was gone: to be expected, and missed if it never happens. */
  readonly excused: Violation[] = [];
  /** How many cases of each property were decided while they happened, for the properties that no history shows. */
  readonly cases: Map<string, number> = new Map();
  readonly network: Network;
  readonly recorder: Recorder;
  readonly #now: () => number;
  readonly #views = new Map<string, View[]>();
  readonly #attempts = new Set<Attempt>();
  readonly #tokens = new Map<string, TokenOrder>();
  readonly #order = new FifoOrder();
  readonly #lostGround = new Map<Ground, number>();
  readonly #extended: View[] = [];
  #ids = 0;

  /** Grants, for the summary. */
  grantCount = 0;
  /** When a call last came to an end, which is what liveness is measured by. */
  lastEndMs = 0;

  constructor(now: () => number, network: Network, recorder: Recorder) {
    this.#now = now;
    this.recorder = recorder;
    this.network = network;
  }

  /** Calls that have not come to an end, of processes that live. */
  get open(): Attempt[] {
    return [...this.#attempts].filter(({ process }) => !process.isDead);
  }

  violated(property: string, text: string): void {
    const isGroundless =
      (this.#lostGround.has("exclusion") && /^[SX]/.test(property) && property !== "S4" && property !== "S5") ||
      (this.#lostGround.has("tokens") && property.startsWith("F") && property !== "F3");
    const violation = { property, atMs: this.#now(), text };
    if (isGroundless) this.excused.push(violation);
    else this.violations.push(violation);
  }

  /** A case of this property was decided while it happened. */
  decided(property: string): void {
    this.cases.set(property, (this.cases.get(property) ?? 0) + 1);
  }

  /** Nothing is promised on this ground from now on. */
  loseGround(ground: Ground): void {
    if (!this.#lostGround.has(ground)) this.#lostGround.set(ground, this.#now());
  }

  /** Somebody calls for a lock. */
  called(process: SimulatedProcess, session: Session, lockName: string, args?: Arguments): Attempt {
    this.#ids += 1;
    const about = { process, lockName, verb: "acquire", owner: `s${session.id}` } as const;
    const operation = args && this.recorder.called({ ...about, args });
    const attempt = { id: this.#ids, session, process, lockName, callMs: this.#now(), returnMs: Infinity, operation };
    this.#attempts.add(attempt);
    this.#order.called(attempt);
    return attempt;
  }

  /** The call ended without a grant. */
  ended(attempt: Attempt, outcome: Outcome = "info", refusal?: Refusal): void {
    if (!this.#attempts.delete(attempt)) return;
    if (attempt.operation !== undefined) this.recorder.ended(attempt.operation, outcome, refusal);
    attempt.returnMs = this.#now();
    this.lastEndMs = attempt.returnMs;
    this.#order.gaveUp(attempt);
  }

  /** The call ended with a lease, which counts `weight` of `limit`. Several for one call, if it takes several locks. */
  granted(attempt: Attempt, lease: Lease, lockName: string, weight: number, limit: number, own: Lease): View {
    this.grantCount += 1;
    this.#attempts.delete(attempt);
    attempt.returnMs = this.#now();
    this.lastEndMs = attempt.returnMs;
    const { process } = attempt;
    if (!this.network.wasGranted(process, own.owner)) {
      this.violated("S5", `${process.name} has a lease of ${lockName}, and no success had reached it`);
    }
    this.newToken(lockName, own.token, attempt.callMs);
    if (attempt.lockName === lockName) {
      const token = this.network.firstToken(process, lease.owner) ?? lease.token;
      for (const passed of this.#order.granted(attempt, token, this.network)) this.violated("X3", passed);
    }
    const operation = this.#operationOf(attempt, lockName);
    this.recorder.granted(operation, own.owner, own.token);
    return this.#add({ attempt, process, lease, own, lockName, weight, limit, operation });
  }

  /** When nothing was promised any more on this ground; Infinity if it was to the end. */
  lostAt(ground: Ground): number {
    return this.#lostGround.get(ground) ?? Infinity;
  }

  /** A lease that goes on in another process, by the same grant. */
  adopted(process: SimulatedProcess, lease: Lease, from: View, calledMs: number): View {
    if (lease.token !== from.token) this.violated("F3", `adopted ${from.lockName} with another token`);
    const { lockName, weight, limit } = from;
    const { mode, ...asked } = from.operation.args;
    // An extension may have changed its length, which the new owner id tells.
    const longestMs = this.recorder.longestMs(from.operation);
    const others = { ...asked, leaseMs: Number(lease.owner.split("/")[2]), longestMs };
    const args = mode === undefined ? others : { ...others, mode: from.weight === 1 ? "read" : mode };
    const operation = this.recorder.called({ process, lockName, verb: "acquire", args, owner: lease.owner });
    operation.callMs = calledMs;
    // The token is that of the first grant, and counts once.
    this.recorder.granted(operation, lease.owner, null);
    const grantId = from.grantId ?? from.operation.id;
    return this.#add({ attempt: undefined, process, lease, own: lease, lockName, weight, limit, operation, grantId });
  }

  /** A token for somebody who called at `callMs`, got now. */
  newToken(lockName: string, token: number, callMs: number): void {
    const tokens = this.#tokens.get(lockName) ?? new TokenOrder();
    this.#tokens.set(lockName, tokens);
    for (const { property, text } of tokens.granted(token, callMs, this.#now())) {
      this.violated(property, `${lockName}: ${text}`);
    }
  }

  /** Its holder, or somebody by force, ends it now. */
  over(view: View): void {
    view.isOver = true;
  }

  /** What the lease says of itself, in true ms at most; checked against all that is known. */
  ask(view: View): number {
    const { lease, process } = view;
    const wasLost = lease.signal.aborted;
    const leftMs = lease.validForMs();
    if (view.isOver) return leftMs;
    const nowMs = this.#now();
    this.#sampled(view, leftMs);
    if (leftMs > 0) {
      if (view.wasFalse || wasLost)
        this.violated("S4", `${process.name}: a lease of ${view.lockName} came back to life`);
      if (view.own.token !== view.token)
        this.violated("F3", `${process.name}: a lease of ${view.lockName} changed its token`);
      view.lossDueMs = nowMs + process.longestTrueMs(leftMs) + SLACK_MS;
    } else {
      if (!lease.signal.aborted)
        this.violated("S4", `${process.name}: a lease of ${view.lockName} ended without a word`);
      if (!wasLost && nowMs > this.#toldBy(view) && this.#runsFreely(process)) {
        this.violated(
          "S4",
          `${process.name}: the loss of ${view.lockName} was told after ${this.#toldBy(view).toFixed(1)}`,
        );
      }
      if (!view.wasFalse) this.#checkReason(view);
      view.wasFalse = true;
      view.lossDueMs = Infinity;
    }
    return leftMs;
  }

  /** Looks for two who hold what only one may. */
  checkExclusion(lockName: string): void {
    let sum = 0;
    const valid = (this.#views.get(lockName) ?? []).filter((view) => {
      if (view.isOver || view.process.isDead || this.ask(view) <= 0) return false;
      sum += view.weight;
      return true;
    });
    const limit = Math.max(...valid.map((view) => view.limit));
    if (valid.length === 0 || sum <= limit) return;
    const who = valid.map(
      ({ process, token, weight, lease }) =>
        `${process.name} (token ${token}, ${weight} of ${limit}, ${lease.validForMs().toFixed(1)} ms left)`,
    );
    this.violated(limit === 1 ? "S2" : "X1", `${lockName} is held by ${who.join(" and ")}`);
    for (const view of valid.slice(1)) view.isOver = true;
  }

  /** A lease was extended: how long it is good for from now on is asked when its holder has taken note. */
  extended(process: SimulatedProcess, owner: string): void {
    for (const views of this.#views.values())
      for (const view of views) if (view.process === process && view.own.owner === owner) this.#extended.push(view);
  }

  /** Called after each event: nobody may be late in telling a loss. */
  afterEvent(): void {
    const nowMs = this.#now();
    for (const view of this.#extended.splice(0)) if (isAlive(view)) this.ask(view);
    for (const [lockName, views] of this.#views) {
      for (const view of views) {
        if (nowMs > view.lossDueMs && nowMs > this.#toldBy(view) && !view.isOver && this.#runsFreely(view.process))
          this.ask(view);
      }
      if (views.length > 12) this.#views.set(lockName, views.filter(isAlive));
    }
  }

  /** A request of this session stands in the queue, and its caller knows. */
  enqueued(session: number): void {
    const operation = this.#order.enqueued(session, this.#now())?.operation;
    // Who asks for several locks at once stands in the queue of one after the other.
    if (operation === undefined || operation.lockName.includes(",")) return;
    this.recorder.add({
      type: "enqueued",
      atMs: this.#now(),
      lockName: operation.lockName,
      operationId: operation.id,
    });
  }

  /** What the process was to hear may not have reached it: its waiters may be passed. */
  deafened(process: SimulatedProcess): void {
    for (const { operation } of this.#order.excuse(process)) {
      if (operation === undefined) continue;
      const { lockName, id } = operation;
      this.recorder.add({ type: "missed", atMs: this.#now(), lockName, operationId: id });
    }
  }

  #add(
    facts: Pick<
      View,
      "attempt" | "process" | "lease" | "own" | "lockName" | "weight" | "limit" | "operation" | "grantId"
    >,
  ): View {
    const view: View = {
      ...facts,
      token: facts.own.token,
      grantedMs: this.#now(),
      isOver: false,
      mayBeTaken: false,
      wasFalse: false,
      lossDueMs: Infinity,
    };
    const views = this.#views.get(facts.lockName);
    if (views === undefined) this.#views.set(facts.lockName, [view]);
    else views.push(view);
    const { operation, lockName, process } = facts;
    const told = (): void => {
      const { reason } = facts.lease.signal.reason as { readonly reason?: string };
      // Those come before the lease is over, and of several locks for all that are not; from then on nobody relies on it.
      if (reason === "max-hold" || reason === "closed" || facts.own !== facts.lease)
        this.recorder.called({ process, lockName, verb: "release", owner: operation.owner, leaseId: operation.id });
      this.recorder.add({
        type: "lost",
        atMs: this.#now(),
        process: historyName(process),
        lockName,
        leaseId: operation.id,
      });
    };
    if (facts.lease.signal.aborted) told();
    else facts.lease.signal.addEventListener("abort", told, { once: true });
    operation.validUntilMs = this.#now() + process.longestTrueMs(facts.lease.validForMs());
    this.ask(view);
    this.checkExclusion(facts.lockName);
    return view;
  }

  /** The record of a grant; a call for several locks has one for each of them, and none for all. */
  #operationOf({ operation, callMs, lockName }: Attempt, granted: string): Draft {
    if (operation === undefined) throw new Error(`nobody called for ${granted}`);
    if (lockName === granted) return operation;
    operation.outcome = "ok";
    operation.returnMs = this.#now();
    const own = this.recorder.copied(operation, granted);
    own.callMs = callMs;
    return own;
  }

  #sampled({ process, lockName, operation, own }: View, leftMs: number): void {
    const isHeld = leftMs > 0;
    this.recorder.add({
      type: "held",
      atMs: this.#now(),
      process: historyName(process),
      lockName,
      leaseId: operation.id,
      isHeld,
      token: operation.token === null ? null : own.token,
      validUntilMs: isHeld ? this.#now() + process.longestTrueMs(leftMs) : null,
    });
  }

  /** When its holder has to know at the latest that it is over, if it runs. */
  #toldBy({ process, lossDueMs, attempt, grantedMs }: View): number {
    const beganMs = attempt?.callMs ?? grantedMs;
    if (process.partedAtMs < beganMs) return lossDueMs;
    return Math.max(lossDueMs, process.resumedAtMs) + process.longestTrueMs(LOOK_MS) + SLACK_MS;
  }

  /** The server may not forget a lease that runs, and with a network that works a renewed one does not end. */
  #checkReason({ lease, process, lockName, mayBeTaken }: View): void {
    const { reason } = lease.signal.reason as { readonly reason?: string };
    const isWrong = (reason === "server-lost" || reason === "force-released") && !mayBeTaken;
    if (isWrong)
      this.violated("S1", `${process.name}: the lease of ${lockName} is lost as ${reason}, and nobody took it`);
  }

  #runsFreely(process: SimulatedProcess): boolean {
    return !process.isDead && !process.isFrozen && this.#now() - process.resumedAtMs > SLACK_MS;
  }
}

function isAlive(view: View): boolean {
  return !view.isOver && !view.wasFalse && !view.process.isDead;
}
