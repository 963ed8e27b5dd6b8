/**
 * The callers of one process that want the same lock, and the one claim that they share.
 */

import { Batch, BLOCK, Caller, type CallerEnds, CROWD_BLOCK, isCrowd, serve } from "./batch.js";
import { PausedError } from "./errors.js";
import { publishAcquire, publishWait } from "./events.js";
import type { ResolvedOptions } from "./options.js";
import { SHORTEST_CALL_MS } from "./polling.js";
import { type Claim, type Granted, type LockProtocol, standingPause, type TimedOut } from "./protocol.js";
import { cleanUp } from "./release.js";
import type { Session } from "./session.js";
import type { DeadlineEnd } from "./time.js";
import { Waiter } from "./waiter.js";

/** Up to so many locks are kept of which all are idle: to make and remove one for each acquire costs more than the acquire's own work. */
const KEPT = 1_024;
/** From so many of one lock on the idle ones go as another one comes: a label may be new with each acquire. */
const KEPT_OF_ONE = 4;

/** The local queues of one Holdfast, by what their claims have in common. */
export class LocalQueues {
  readonly #session: Session;
  /** By the key of the lock; of one lock there is one, unless callers want leases of several lengths or labels. */
  #byKey = new Map<string, readonly LocalQueue[]>();
  #tidyAt = KEPT;

  constructor(session: Session) {
    this.#session = session;
  }

  /** The queue that a caller with these options belongs to. */
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
 * Callers of one process that want the same lock: one claim for all of them, and its lease goes from one to the next
 * without a round trip.
 *
 * The claim stands in the server's queue for everybody who waits here. When it is granted, those who were waiting
 * already are its batch, 32 at most, or 128 in a crowd: they hold the lock one after the other, each with a token of its own out of those
 * that the grant reserves. Whoever comes later waits for the next claim, which queues at once. So other processes are
 * served after one batch, and a batch that takes long is broken off.
 *
 * Invariants: nobody is in a batch who called after the server made the grant, so that a token never seems older than
 * one that its caller may have heard of; a lease begins only while the claim is good; whoever waits here while no claim
 * is on its way gets one, asked for in the name of the first in line, whom it serves whatever the clocks do.
 *
 * The idea is that of cohort locks (Dice, Marathe, Shavit 2012); see docs/adr/060-cohorts.md.
 *
 * One for each lock, name, length of lease, label and way to meet a pause: a claim has one of each, and errors tell the name.
 */
export class LocalQueue {
  readonly #session: Session;
  readonly #name: string;
  readonly #leaseMs: number;
  readonly #label: string;
  readonly #throughPause: boolean;
  /** Not in a batch, first come first served. */
  #waiting: Caller[] = [];
  /** Those of them that have joined a claim behind a pause, until it is known whether it still stands. */
  readonly #newcomers: Caller[] = [];
  #waiter: Waiter | undefined;
  /** Whoever the claim on its way was asked for: it had called before, whatever the clocks do. */
  #asker: Caller | undefined;
  #batch: Batch | undefined;
  /** Of the last grant. */
  #lastClaim: Claim | undefined;
  #isCrowd = false;
  /** Of the claims: it is for each caller by itself to give up. */
  #patient: ResolvedOptions | undefined;

  constructor(session: Session, name: string, { leaseMs, label, throughPause }: ResolvedOptions) {
    this.#session = session;
    this.#name = name;
    this.#leaseMs = leaseMs;
    this.#label = label;
    this.#throughPause = throughPause;
  }

  /** Whether callers with these options belong here. */
  suits(name: string, { leaseMs, label, throughPause }: ResolvedOptions): boolean {
    return (
      this.#leaseMs === leaseMs && this.#label === label && this.#throughPause === throughPause && this.#name === name
    );
  }

  /** Whether nobody waits here. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#waiter === undefined && (this.#batch?.isServed ?? true);
  }

  /** One more caller. @throws ClosedError, signal.reason */
  join(protocol: LockProtocol, options: ResolvedOptions, ends: CallerEnds): void {
    options.signal?.throwIfAborted();
    this.#session.assertOpen(protocol.name);
    const caller = new Caller(this.#session.runtime, protocol, options, ends, (end) => this.#leave(caller, end));
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
    // Until the first answer, which takes no longer than a command may, a near deadline is as for a single caller.
    if (this.#waiter?.isAnswered === true) caller.deadline.start();
    else if (options.waitMs <= this.#session.commandTimeoutMs) caller.deadline.start(SHORTEST_CALL_MS);
  }

  /**
   * The claim on its way keeps its place behind a pause, which whoever comes now has not. The pause may be over since it was last
   * asked about, and then this caller has its place here. One request is under way at a time: whoever comes meanwhile needs the
   * answer to a later one.
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
   * A waiter on its way to a claim, for everybody who waits. Undefined if no claim can be made any more.
   *
   * @param keepsPlace  whether they have waited before, so that no pause refuses them
   */
  #newWaiter(asker: Caller, keepsPlace = false): Waiter | undefined {
    const { protocol, options } = asker;
    const block = this.#isCrowd ? CROWD_BLOCK : BLOCK;
    let claim: Claim;
    try {
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
    this.#waiter = undefined;
    // That it is granted shows that the claim before it has ended, of which its holder may not have heard yet.
    this.#waiting.unshift(...(this.#batch?.end() ?? []));
    if (this.#lastClaim !== undefined) this.#session.ended(this.#lastClaim);
    const most = Math.min(granted.claim.amount, this.#waiting.length);
    // Whoever stands before the one that asked for it had called before.
    const asker = this.#asker === undefined ? -1 : this.#waiting.indexOf(this.#asker);
    let served = Math.min(asker + 1, most);
    while (served < most && this.#waiting[served]?.hadCalledBy(granted.setAt) === true) served += 1;
    this.#isCrowd = isCrowd(served, granted.claim.amount);
    const callers = this.#waiting.splice(0, served);
    this.#asker = undefined;
    if (this.#serve(granted, callers)) {
      this.#lastClaim = granted.claim;
      // If the first answer was the grant, nobody has needed a timer yet; and no waiter keeps the process alive any more.
      for (const caller of callers) if (!caller.hasLeft) caller.deadline.stay();
    } else {
      // Whoever it was asked for has left.
      const { claim, mayStillRun } = granted;
      void cleanUp(this.#session, protocol, claim, mayStillRun(), this.#session.commandTimeoutMs);
    }
    this.#askForRest();
  }

  /** Begins the first lease of a claim. @returns false if nobody is left */
  #serve(granted: Granted, callers: readonly Caller[]): boolean {
    const [first] = callers;
    if (callers.length === 1 && first?.hasLeft === false) {
      // A free lock: a hold, and nothing else.
      this.#batch = undefined;
      serve(this.#session, granted, first, 0);
      return true;
    }
    const batch = new Batch(this.#session, granted, callers, (left) => this.#over(left));
    if (!batch.serveNext()) return false;
    this.#batch = batch;
    return true;
  }

  /** Whoever was not served any more is the first in line. */
  #over(left: readonly Caller[]): void {
    this.#waiting = [...left, ...this.#waiting];
    this.#askForRest();
  }

  #failed(error: unknown): void {
    this.#waiter = undefined;
    this.#asker = undefined;
    const callers = this.#waiting.splice(0);
    for (const caller of callers) {
      caller.leave();
      caller.ends.failed(error);
    }
  }

  /** One caller's deadline or abort. Only the last caller has something to undo on the server. */
  #leave(caller: Caller, end: DeadlineEnd): void {
    const { waiter, last } = this.#take(caller);
    if (end === "abort") {
      void last?.abandon();
      caller.ends.failed(caller.options.signal?.reason);
    } else {
      const { timedOut, failed } = caller.ends;
      (last === undefined ? this.#look(caller, waiter) : last.giveUp(caller.options.waitMs)).then(timedOut, failed);
    }
  }

  /** Takes it out of those who wait. @returns the claim on its way for it; also as `last`, if nobody else wants that one */
  #take(caller: Caller): { readonly waiter: Waiter | undefined; readonly last: Waiter | undefined } {
    caller.leave();
    const at = this.#waiting.indexOf(caller);
    if (at < 0) return { waiter: undefined, last: undefined };
    this.#waiting.splice(at, 1);
    const waiter = this.#waiter;
    if (this.#waiting.length > 0) return { waiter, last: undefined };
    this.#waiter = undefined;
    this.#asker = undefined;
    return { waiter, last: waiter };
  }

  /** What is to be said to a caller whose claim goes on for others. @throws StoreError */
  async #look({ protocol, deadline }: Caller, waiter: Waiter | undefined): Promise<TimedOut> {
    if (waiter?.failure !== undefined) throw waiter.failure;
    const timeoutMs = Math.min(this.#session.commandTimeoutMs, SHORTEST_CALL_MS);
    const asker = { owner: waiter?.owner, calledAtMs: deadline.startedAt.monotonicMs, timeoutMs };
    const state = await this.#session.inspections.inspect(protocol, asker).catch(() => undefined);
    // Without a claim on its way it was in a batch, which those in the queue come after.
    return { state: waiter === undefined && state !== undefined ? { ...state, ahead: 0 } : state };
  }
}
