/**
 * Watches a run from outside and decides the properties while it happens.
 *
 * It follows calls to their ends and keeps what was found wrong; the leases themselves are watched in lease-watch.ts, and
 * the queues in queue-watch.ts.
 */
import type { Lease } from "holdfast";
import type { Arguments, Outcome, Refusal } from "../history/index.js";
import { type Ground, groundOf } from "../sweeps/ground.js";
import type { Attempt } from "./attempt.js";
import type { Draft } from "./draft.js";
import { LeaseWatch } from "./lease-watch.js";
import type { Network } from "./messages.js";
import type { Plan, Session } from "./plan.js";
import type { SimulatedProcess } from "./process.js";
import { QueueWatch } from "./queue-watch.js";
import type { Recorder } from "./recorder.js";
import { TokenOrder } from "./tokens.js";
import type { View, Violation } from "./view.js";

const NOTED_MAX = 3;

/** See the file header. */
export class Judge {
  readonly violations: Violation[] = [];
  /** What must not happen either, and ends no run, so that what follows from it is seen as well. */
  readonly noted: Violation[] = [];
  /** What happened after the ground for it was gone: to be expected, and missed if it never happens. */
  readonly excused: Violation[] = [];
  /** How many cases of each property were decided while they happened, for the properties that no history shows. */
  readonly cases: Map<string, number> = new Map();
  readonly network: Network;
  readonly recorder: Recorder;
  readonly queues: QueueWatch;
  readonly leases: LeaseWatch;
  /** A lease begins or ends that may follow another within the same instant. */
  readonly passMoment: () => void;
  readonly #now: () => number;
  readonly #attempts = new Set<Attempt>();
  readonly #tokens = new Map<string, TokenOrder>();
  readonly #lostGround = new Map<Ground, number>();
  #ids = 0;

  /** Called after each event. */
  readonly watches: (() => void)[] = [];
  /** Calls that ended without a grant, and when. */
  readonly gaveUp: { readonly session: Session; readonly atMs: number }[] = [];
  /** Grants, for the summary. */
  grantCount = 0;
  /** When a caller last got what it had asked for. Liveness is measured by this; giving up is not progress. */
  lastEndMs = 0;

  constructor(now: () => number, network: Network, recorder: Recorder, plan: Plan, passMoment: () => void) {
    this.#now = now;
    this.passMoment = passMoment;
    this.recorder = recorder;
    this.network = network;
    const violated = (property: string, text: string): void => this.violated(property, text);
    this.leases = new LeaseWatch(now, violated, recorder, plan.profile === "none");
    this.queues = new QueueWatch(now, this);
  }

  /** Calls that have not come to an end, of processes that live. */
  get open(): Attempt[] {
    return [...this.#attempts].filter(({ process }) => !process.isDead);
  }

  violated(property: string, text: string): void {
    this.#violated(property, text, this.violations);
  }

  /** As `violated`, of the first few. */
  note(property: string, text: string): void {
    if (this.noted.length < NOTED_MAX) this.#violated(property, text, this.noted);
  }

  #violated(property: string, text: string, violations: Violation[]): void {
    const ground = groundOf(property);
    const isGroundless = ground !== undefined && this.#lostGround.has(ground);
    const violation = { property, atMs: this.#now(), text };
    if (isGroundless) this.excused.push(violation);
    else violations.push(violation);
  }

  /** A case of this property was decided while it happened. */
  decided(property: string): void {
    this.cases.set(property, (this.cases.get(property) ?? 0) + 1);
  }

  /** Nothing is promised on this ground from now on. */
  loseGround(ground: Ground): void {
    if (!this.#lostGround.has(ground)) this.#lostGround.set(ground, this.#now());
  }

  /** A caller asks for a lock. */
  called(process: SimulatedProcess, session: Session, lockName: string, args?: Arguments): Attempt {
    this.#ids += 1;
    const owner = session.crowd === undefined ? `s${session.id}` : `c${session.crowd}.s${session.id}`;
    const about = { process, lockName, verb: "acquire", owner } as const;
    const operation = args && this.recorder.called({ ...about, args });
    const attempt = { id: this.#ids, session, process, lockName, callMs: this.#now(), returnMs: Infinity, operation };
    this.#attempts.add(attempt);
    this.queues.called(attempt);
    return attempt;
  }

  /** The call ended without a grant. */
  ended(attempt: Attempt, outcome: Outcome = "info", refusal?: Refusal): void {
    if (!this.#attempts.delete(attempt)) return;
    if (attempt.operation !== undefined) this.recorder.ended(attempt.operation, outcome, refusal);
    attempt.returnMs = this.#now();
    if (refusal === "busy") this.lastEndMs = attempt.returnMs;
    this.queues.gaveUp(attempt);
    this.gaveUp.push({ session: attempt.session, atMs: attempt.returnMs });
  }

  /** The call ended with a lease, which counts `weight` of `limit`. Several for one call, if it takes several locks. */
  granted(attempt: Attempt, lease: Lease, lockName: string, weight: number, limit: number, own: Lease): View {
    this.grantCount += 1;
    if (attempt.session.crowd !== undefined) this.passMoment();
    this.#attempts.delete(attempt);
    attempt.returnMs = this.#now();
    this.lastEndMs = attempt.returnMs;
    const { process } = attempt;
    if (!this.network.wasGranted(process, own.owner)) {
      this.violated("S5", `${process.name} has a lease of ${lockName}, and no success had reached it`);
    }
    this.newToken(lockName, own.token, attempt.callMs);
    const beginning = {
      process,
      owner: own.owner,
      token: own.token,
      lockName,
      callMs: attempt.callMs,
      grantedMs: this.recorder.truth.grantedMs(own.owner),
      validForMs: own.validForMs(),
    };
    const tokenOfCall = this.network.firstToken(process, lease.owner) ?? lease.token;
    const turn = this.queues.granted(attempt, beginning, tokenOfCall);
    const operation = this.#operationOf(attempt, lockName, own.owner);
    this.recorder.granted(operation, own.owner, own.token, turn);
    const isRenewed = attempt.session.renew;
    return this.leases.add({ attempt, process, lease, own, lockName, weight, limit, operation, turn, isRenewed });
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
    this.recorder.granted(operation, lease.owner, null, 0);
    const grantId = from.grantId ?? from.operation.id;
    return this.leases.add({
      attempt: undefined,
      process,
      lease,
      own: lease,
      lockName,
      weight,
      limit,
      operation,
      grantId,
      turn: 0,
      isRenewed: from.isRenewed,
    });
  }

  /** A token, granted now to a caller that called at `callMs`. */
  newToken(lockName: string, token: number, callMs: number): void {
    const tokens = this.#tokens.get(lockName) ?? new TokenOrder();
    this.#tokens.set(lockName, tokens);
    for (const { property, text } of tokens.granted(token, callMs, this.#now())) {
      this.violated(property, `${lockName}: ${text}`);
    }
  }

  /** Called after each event. */
  afterEvent(): void {
    for (const look of this.watches) look();
    this.queues.shared.afterEvent();
    this.leases.afterEvent();
  }

  /**
   * The record of a grant; a call for several locks has one for each of them, and none for all.
   *
   * A caller of several locks requests them one after the other. While it waits for the first, it does not wait for the
   * second, which may be free all that time. So the record of each lock begins when the claim that was granted was first
   * sent. The deadline stays that of the whole call.
   */
  #operationOf({ operation, callMs, lockName, process }: Attempt, granted: string, owner: string): Draft {
    if (operation === undefined) throw new Error(`nobody called for ${granted}`);
    if (lockName === granted) return operation;
    operation.outcome = "ok";
    operation.returnMs = this.#now();
    const own = this.recorder.copied(operation, granted);
    own.callMs = this.recorder.truth.claimOf(process, owner.split("/")[1])?.callMs ?? callMs;
    const { waitMs } = operation.args;
    if (waitMs !== undefined) own.args = { ...operation.args, waitMs: waitMs - (own.callMs - callMs) };
    return own;
  }
}
