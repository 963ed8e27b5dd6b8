/**
 * Local queues: the callers of one process that want the same lock share one claim.
 */

import { Batch, BLOCK, Caller, type CallerEnds, CROWD_BLOCK, isCrowd, serve } from "./batch.js";
import { PausedError } from "./errors.js";
import { publishAcquire, publishWait } from "./events.js";
import type { ResolvedOptions } from "./options.js";
import { SHORTEST_CALL_MS } from "./polling.js";
import { type Claim, type Granted, type LockProtocol, standingPause, type TimedOut } from "./protocol.js";
import { cleanUp } from "./release.js";
import type { Retainable, Retention } from "./retention.js";
import type { Session } from "./session.js";
import { type DeadlineEnd, now } from "./time.js";
import { Waiter } from "./waiter.js";

/**
 * Idle queues are kept for up to this many locks, because creating and removing a queue for each acquire costs more
 * than the acquire itself.
 */
const KEPT = 1_024;
/**
 * If one lock has this many queues, a new queue replaces the idle ones. Otherwise, callers that use a new label for
 * each acquire would leave an idle queue behind each time.
 */
const KEPT_OF_ONE = 4;

/** The local queues of one Holdfast. Callers share a queue if they can share a claim. */
export class LocalQueues {
  readonly #session: Session;
  /**
   * The queues, by lock key. A lock has several queues only if its callers' options differ; see `suits`.
   */
  #byKey = new Map<string, readonly LocalQueue[]>();
  #tidyAt = KEPT;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Returns the queue for a caller with these options. Creates it if necessary. */
  of(protocol: LockProtocol, options: ResolvedOptions): LocalQueue {
    const { name, key } = protocol;
    const known = this.#byKey.get(key);
    const found = known?.find((one) => one.suits(name, options));
    if (found !== undefined) return found;
    const queue = new LocalQueue(this.#session, name, options);
    if (known === undefined && this.#byKey.size >= this.#tidyAt) this.#tidy();
    const others = known === undefined || known.length < KEPT_OF_ONE ? known : busyOf(known);
    this.#byKey.set(key, [...(others ?? []), queue]);
    return queue;
  }

  #tidy(): void {
    const busy = Array.from(this.#byKey, ([key, all]) => [key, busyOf(all)] as const);
    this.#byKey = new Map(busy.filter(([, all]) => all.length > 0));
    this.#tidyAt = Math.max(KEPT, this.#byKey.size * 2);
  }
}

function busyOf(queues: readonly LocalQueue[]): readonly LocalQueue[] {
  return queues.filter(({ isIdle }) => !isIdle);
}

/**
 * The callers of one process that want the same lock. They share one claim, and its lease passes from one caller to the
 * next without a round trip.
 *
 * The claim is in the server's queue on behalf of all callers waiting here. When it is granted, the callers that were
 * already waiting form its batch: at most 32 callers, 128 if many are waiting, or more with `retain`. They hold the
 * lock one after the other, each with its own token from those that the grant reserves. Later callers wait for the next
 * claim, which joins the queue immediately. So other processes are served after one batch. A batch that takes too long
 * is stopped.
 *
 * Invariants:
 * - A batch contains only callers that called before the server made the grant. So no caller gets a token older than
 *   one that it may already know.
 * - A lease begins only while the claim is valid.
 * - If callers are waiting and no claim is pending, a claim is requested for the first caller in line. That claim
 *   serves the caller even if the clocks jump.
 *
 * The idea comes from cohort locks (Dice, Marathe, Shavit 2012); see docs/adr/060-cohorts.md.
 *
 * There is one queue for each combination of lock, name, lease length, label and `throughPause`, because a claim has
 * one of each and errors contain the name.
 */
export class LocalQueue {
  readonly #session: Session;
  readonly #name: string;
  readonly #leaseMs: number;
  readonly #label: string;
  readonly #throughPause: boolean;
  /** Callers that are not in a batch, in the order in which they will be served. */
  #waiting: Caller[] = [];
  /** Callers that joined the claim of a paused lock. A reply will show whether the lock is still paused. */
  readonly #newcomers: Caller[] = [];
  #waiter: Waiter | undefined;
  /**
   * The caller for which the pending claim was requested. It certainly called before the grant, even if the clocks
   * disagree.
   */
  #asker: Caller | undefined;
  #batch: Batch | undefined;
  /** The claim of the last grant, if it may be retained. */
  #retained: Retainable | undefined;
  /** Claim of the last grant. */
  #lastClaim: Claim | undefined;
  #isCrowd = false;
  /** Options of this queue's claims. They have no deadline and no signal, because each caller gives up on its own. */
  #patient: ResolvedOptions | undefined;

  constructor(session: Session, name: string, { leaseMs, label, throughPause }: ResolvedOptions) {
    this.#session = session;
    this.#name = name;
    this.#leaseMs = leaseMs;
    this.#label = label;
    this.#throughPause = throughPause;
  }

  /** Whether callers with these options can use this queue. */
  suits(name: string, { leaseMs, label, throughPause }: ResolvedOptions): boolean {
    return (
      this.#leaseMs === leaseMs && this.#label === label && this.#throughPause === throughPause && this.#name === name
    );
  }

  /** Whether no caller is waiting here. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#waiter === undefined && (this.#batch?.isServed ?? true);
  }

  /** Adds a caller. @throws ClosedError, RangeError, signal.reason */
  join(protocol: LockProtocol, options: ResolvedOptions, ends: CallerEnds): void {
    options.signal?.throwIfAborted();
    this.#session.assertOpen(protocol.name);
    (protocol.retain as Retention | undefined)?.check(options);
    const caller = new Caller(this.#session.runtime, protocol, options, ends, (end) => this.#leave(caller, end));
    if (this.#retained?.serve(caller) === true) return;
    this.#waiting.push(caller);
    const joined = this.#waiter;
    if (joined === undefined) this.#newWaiter(caller)?.ask();
    const { startedAt } = caller.deadline;
    if (this.#waiter !== undefined) caller.claim = this.#waiter;
    publishAcquire(protocol, caller.claim, options, startedAt, this.#session.store);
    if (joined !== undefined) publishWait(protocol, joined, joined.isQueued, startedAt);
    if (joined?.isPaused === true && !options.throughPause) {
      this.#newcomers.push(caller);
      if (this.#newcomers.length === 1) void this.#refuseIfPaused();
    }
    // The first reply takes at most `commandTimeoutMs`. Until it arrives, only a deadline within that time needs a
    // timer. With this rule, callers time out as they do without a local queue.
    if (this.#waiter?.isAnswered === true) caller.deadline.start();
    else if (options.waitMs <= this.#session.commandTimeoutMs) caller.deadline.start(SHORTEST_CALL_MS);
  }

  /**
   * Refuses new callers if the lock is still paused. The pending claim keeps its place during a pause, but callers that
   * come after the pause began have no place to keep. If the pause has ended since the last reply, new callers may
   * stay.
   *
   * Only one request runs at a time. Callers that come while it runs wait for the reply to the next request.
   */
  async #refuseIfPaused(): Promise<void> {
    while (this.#newcomers.length > 0) {
      const asked = this.#newcomers.length;
      const [{ protocol }] = this.#newcomers as [Caller, ...Caller[]];
      const state = await protocol.inspect(undefined, this.#session.commandTimeoutMs).catch(() => undefined);
      const pause = standingPause(this.#session, state);
      for (const caller of this.#newcomers.splice(0, asked)) {
        if (pause === undefined || !this.#waiting.includes(caller)) continue;
        void this.#take(caller).last?.abandon();
        caller.ends.failed(new PausedError(protocol.name, pause));
      }
    }
  }

  /**
   * Creates a claim and its waiter for all waiting callers. If that fails, rejects these callers and returns undefined.
   *
   * @param keepsPlace  whether the callers were already waiting; if so, they wait even if the lock is paused
   */
  #newWaiter(asker: Caller, keepsPlace = false): Waiter | undefined {
    const { protocol, options } = asker;
    let claim: Claim;
    try {
      const block =
        (protocol.retain as Retention | undefined)?.nextBlock(this.#session, protocol, this.#retained) ??
        (this.#isCrowd ? CROWD_BLOCK : BLOCK);
      claim = this.#session.newClaim(
        protocol.name,
        this.#leaseMs,
        block,
        this.#label,
        protocol.confirmHandOff !== undefined,
      );
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
    this.#asker = asker;
    this.#patient ??= { ...options, waitMs: Infinity, signal: undefined };
    const patient = keepsPlace ? { ...this.#patient, throughPause: true } : this.#patient;
    const waiter = new Waiter(this.#session, protocol, patient, claim, {
      waiting: () => {
        for (const caller of this.#waiting) caller.deadline.start();
      },
      granted: (granted) => this.#granted(granted, protocol),
      timedOut: () => {},
      failed: (error) => {
        if (this.#waiter === waiter) this.#failed(error);
      },
    });
    this.#waiter = waiter;
    return waiter;
  }

  #askForRest(): void {
    if (this.#waiter !== undefined) return;
    const [first] = this.#waiting;
    if (first === undefined) return;
    this.#newWaiter(first, true)?.ask();
    for (const caller of this.#waiting) caller.deadline.start();
  }

  #granted(granted: Granted, protocol: LockProtocol): void {
    const hasWaited = this.#waiter?.isAnswered !== false;
    this.#waiter = undefined;
    this.#waiting.unshift(...(this.#batch?.end() ?? []));
    const most = Math.min(granted.claim.amount, this.#waiting.length);
    // Callers ahead of `#asker` called even earlier, so the claim can serve them too.
    const asker = this.#asker === undefined ? -1 : this.#waiting.indexOf(this.#asker);
    let served = Math.min(asker + 1, most);
    while (served < most && this.#waiting[served]?.hadCalledBy(granted.setAt) === true) served += 1;
    this.#isCrowd = isCrowd(served, granted.claim.amount);
    const callers = this.#waiting.splice(0, served);
    this.#asker = undefined;
    // This grant shows that the previous claim has ended. Notify its holder, which may not know yet. The notification
    // may return callers of that holder's batch to this queue.
    if (this.#lastClaim !== undefined) this.#session.ended(this.#lastClaim);
    this.#retained = (protocol.retain as Retention | undefined)?.keep(
      this.#session,
      protocol,
      granted,
      hasWaited,
      this.#waiting.length,
    );
    if (this.#serve(granted, callers)) {
      this.#lastClaim = granted.claim;
      // If the first reply was the grant, no deadline timer runs yet. The waiter no longer keeps the process alive, so
      // the deadlines of these callers must.
      for (const caller of callers) if (!caller.hasLeft) caller.deadline.stay();
    } else {
      // All callers that this grant could serve have left.
      const { claim, mayStillRun } = granted;
      void cleanUp(this.#session, protocol, claim, mayStillRun());
    }
    this.#askForRest();
  }

  /** Begins the first lease of a claim. @returns false if no caller is left */
  #serve(granted: Granted, callers: readonly Caller[]): boolean {
    const [first] = callers;
    if (callers.length === 1 && first?.hasLeft === false) {
      // A single caller needs only a hold, not a batch.
      this.#batch = undefined;
      serve(this.#session, granted, first, 0, now(this.#session.runtime), this.#retained);
      return true;
    }
    const batch = new Batch(this.#session, granted, callers, (left) => this.#over(left));
    if (!batch.serveNext()) return false;
    this.#batch = batch;
    return true;
  }

  /** Puts the callers that a batch did not serve at the front of the queue. */
  #over(left: readonly Caller[]): void {
    this.#waiting = [...left, ...this.#waiting];
    this.#askForRest();
  }

  #failed(error: unknown): void {
    this.#waiter = undefined;
    this.#asker = undefined;
    for (const caller of this.#waiting.splice(0)) {
      caller.leave();
      caller.ends.failed(error);
    }
  }

  /** Handles one caller's deadline or abort. Only the last caller to leave has something to undo on the server. */
  #leave(caller: Caller, end: DeadlineEnd): void {
    const { waiter, last } = this.#take(caller);
    if (end === "abort") {
      void last?.abandon();
      caller.ends.failed(caller.options.signal?.reason);
    } else {
      const { timedOut, failed } = caller.ends;
      (last === undefined ? this.#inspect(caller, waiter) : last.giveUp(caller.options.waitMs)).then(timedOut, failed);
    }
  }

  /**
   * Removes a caller from the queue.
   *
   * @returns `waiter`, the waiter of the pending claim; and `last`, the same waiter if no other caller needs it
   */
  #take(caller: Caller): { readonly waiter?: Waiter | undefined; readonly last?: Waiter | undefined } {
    caller.leave();
    const at = this.#waiting.indexOf(caller);
    if (at < 0) return {};
    this.#waiting.splice(at, 1);
    const waiter = this.#waiter;
    if (this.#waiting.length > 0) return { waiter };
    this.#waiter = undefined;
    this.#asker = undefined;
    return { waiter, last: waiter };
  }

  /** Inspects the lock for a caller that timed out while its claim continues for other callers. @throws StoreError */
  async #inspect({ protocol, deadline }: Caller, waiter: Waiter | undefined): Promise<TimedOut> {
    if (waiter?.failure !== undefined) throw waiter.failure;
    const timeoutMs = Math.min(this.#session.commandTimeoutMs, SHORTEST_CALL_MS);
    const asker = { owner: waiter?.owner, calledAtMs: deadline.startedAt.monotonicMs, timeoutMs };
    const { state } = await this.#session.inspections.inspect(protocol, asker);
    // A caller without a pending claim is in a batch, which is ahead of all claims in the queue.
    return { state: waiter === undefined && state !== undefined ? { ...state, ahead: 0 } : state };
  }
}
