/**
 * Observes a run from outside and checks the properties as it happens.
 *
 * It follows calls until they end and collects violations. lease-watch.ts watches the leases, queue-watch.ts the
 * queues.
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

/** The judge of a run. */
export class Judge {
  readonly violations: Violation[] = [];
  /** Violations that do not end the run, so that their consequences are seen too. */
  readonly noted: Violation[] = [];
  /** Violations after a guarantee had ended. They are expected; a set of runs without any would be suspicious. */
  readonly excused: Violation[] = [];
  /** How many cases of each property were decided during the run, for properties that are not visible in histories. */
  readonly cases: Map<string, number> = new Map();
  readonly network: Network;
  readonly recorder: Recorder;
  readonly queues: QueueWatch;
  readonly leases: LeaseWatch;
  /** Called when a lease begins or ends, because another lease may follow within the same instant. */
  readonly passMoment: () => void;
  readonly #now: () => number;
  readonly #attempts = new Set<Attempt>();
  readonly #tokens = new Map<string, TokenOrder>();
  readonly #lostGround = new Map<Ground, number>();
  #ids = 0;

  /** Called after each event. */
  readonly watches: (() => void)[] = [];
  /** Calls that ended without a grant, with their times. */
  readonly gaveUp: { readonly session: Session; readonly atMs: number }[] = [];
  /** The number of grants, for the summary. */
  grantCount = 0;
  /** When a caller last got what it requested. Measures liveness; giving up is not progress. */
  lastEndMs = 0;

  constructor(now: () => number, network: Network, recorder: Recorder, plan: Plan, passMoment: () => void) {
    this.#now = now;
    this.passMoment = passMoment;
    this.recorder = recorder;
    this.network = network;
    const violated = (property: string, text: string): void => this.violated(property, text);
    this.leases = new LeaseWatch(now, violated, recorder, plan.profile === "none", plan.oldProcess);
    this.queues = new QueueWatch(now, this);
  }

  /** Open calls of processes that are alive. */
  get open(): Attempt[] {
    return [...this.#attempts].filter(({ process }) => !process.isDead);
  }

  violated(property: string, text: string): void {
    this.#violated(property, text, this.violations);
  }

  /** Like `violated`, for the first few. */
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

  /** Counts a case of this property that was decided during the run. */
  decided(property: string): void {
    this.cases.set(property, (this.cases.get(property) ?? 0) + 1);
  }

  /** Ends the guarantees that depend on this ground. */
  loseGround(ground: Ground): void {
    if (!this.#lostGround.has(ground)) this.#lostGround.set(ground, this.#now());
  }

  /** Records that a caller requests a lock. */
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

  /** Records that the call ended without a grant. */
  ended(attempt: Attempt, outcome: Outcome = "info", refusal?: Refusal): void {
    if (!this.#attempts.delete(attempt)) return;
    if (attempt.operation !== undefined) this.recorder.ended(attempt.operation, outcome, refusal);
    attempt.returnMs = this.#now();
    if (refusal === "busy") this.lastEndMs = attempt.returnMs;
    this.queues.gaveUp(attempt);
    this.gaveUp.push({ session: attempt.session, atMs: attempt.returnMs });
  }

  /**
   * Records that the call ended with a lease of `weight` out of `limit`. Called several times for a call that
   * acquires several locks.
   */
  granted(attempt: Attempt, lease: Lease, lockName: string, weight: number, limit: number, own: Lease): View {
    this.grantCount += 1;
    if (attempt.session.crowd !== undefined) this.passMoment();
    this.#attempts.delete(attempt);
    attempt.returnMs = this.#now();
    this.lastEndMs = attempt.returnMs;
    const { process } = attempt;
    if (!this.network.wasGranted(process, own.owner)) {
      this.violated("S5", `${process.name} has a lease of ${lockName}, but no reply that grants it had arrived`);
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

  /** When the guarantees on this ground ended; Infinity if they held to the end. */
  lostAt(ground: Ground): number {
    return this.#lostGround.get(ground) ?? Infinity;
  }

  /** Records that a lease continues in another process, with the same grant. */
  adopted(process: SimulatedProcess, lease: Lease, from: View, calledMs: number): View {
    if (lease.token !== from.token) this.violated("F3", `adopted ${from.lockName} with another token`);
    const { lockName, weight, limit } = from;
    const { mode, ...asked } = from.operation.args;
    // An extension may have changed its length; the new owner id contains the new length.
    const longestMs = this.recorder.longestMs(from.operation);
    const others = { ...asked, leaseMs: Number(lease.owner.split("/")[2]), longestMs };
    const args = mode === undefined ? others : { ...others, mode: from.weight === 1 ? "read" : mode };
    const operation = this.recorder.called({ process, lockName, verb: "acquire", args, owner: lease.owner });
    operation.callMs = calledMs;
    // The token is that of the first grant and counts only once.
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

  /** Checks a token that was granted to a caller that called at `callMs`. */
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
   * The record of a grant. A call for several locks has one record per lock, and none for the whole.
   *
   * Such a caller requests the locks one after another: while it waits for the first, it does not wait for the
   * second, which may be free. So the record of each lock begins when its granted claim was first sent. The deadline
   * is that of the whole call.
   */
  #operationOf({ operation, callMs, lockName, process }: Attempt, granted: string, owner: string): Draft {
    if (operation === undefined) throw new Error(`no call for ${granted} is recorded`);
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
