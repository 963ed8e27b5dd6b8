/** What a caller does with anything that is leased: get it, hold it, look at it, extend it, end it in some way. */
import {
  AcquireTimeoutError,
  type ExportedLease,
  type Lease,
  LeaseLostError,
  LockError,
  StoreError,
  UnsupportedError,
  WaitTimeoutError,
} from "holdfast";
import type { Arguments, Outcome } from "../history/index.js";
import type { Attempt } from "./attempt.js";
import type { View } from "./judge.js";
import type { Plan } from "./plan.js";
import type { SimulatedProcess } from "./process.js";
import type { Draft } from "./recorder.js";
import type { Scene } from "./scene.js";

/** The options of a call, as all kinds take them. */
export interface Options {
  readonly leaseMs: number;
  readonly renew: boolean;
  readonly label: string;
  readonly maxHoldMs?: number;
}

/** One kind of lock, as the program uses it. */
export interface Leased<Held extends Lease> {
  acquire(options: Options & { readonly waitMs: number; readonly signal?: AbortSignal }): Promise<Held>;
  tryAcquire(options: Options): Promise<Held | null>;
  /** What the lease holds: of each lock so much of so much. */
  holds(lease: Held): readonly {
    readonly lockName: string;
    readonly lease: Lease;
    readonly weight: number;
    readonly limit: number;
    readonly own?: Lease;
  }[];
  /** What the kind can do besides, while the lease is held. */
  meanwhile?(lease: Held, views: readonly View[], scene: Scene): Promise<void>;
  forceRelease?(whose: { readonly owner: string }): Promise<boolean>;
  readonly canMove: boolean;
}

/** A call may take this much longer than its deadline, besides the time-outs of its last requests. */
const SETTLE_MS = 250;

/** Calls for the lock. @returns undefined if it was not granted */
export async function call<Held>(
  scene: Scene,
  make: (signal: AbortSignal | undefined) => Promise<Held | null>,
  waitMs: number = scene.session.isTry ? 0 : scene.session.waitMs,
  claims?: Arguments,
): Promise<{ readonly lease: Held; readonly attempt: Attempt } | undefined> {
  const { judge, session, member, world } = scene;
  const { process } = member;
  const patience = Number.isFinite(waitMs) ? { waitMs: process.longestTrueMs(waitMs) } : {};
  const attempt = judge.called(process, session, scene.lockName, claims && { ...claims, ...patience });
  const controller = session.abortAfterMs === null ? undefined : new AbortController();
  let abortedMs = Infinity;
  const abortion =
    controller &&
    process.startTimer(
      () => {
        abortedMs = world.nowMs;
        if (attempt.operation !== undefined)
          attempt.operation.args = { ...attempt.operation.args, abortedAtMs: world.nowMs };
        controller.abort(new Error("the caller has no time left"));
      },
      session.abortAfterMs ?? 0,
      "abort",
    );
  try {
    const lease = await make(controller?.signal);
    checkSettled(scene, attempt, waitMs, abortedMs);
    forgiveFrozen(attempt);
    if (lease !== null) return { lease, attempt };
    judge.ended(attempt, "no", "busy");
  } catch (error) {
    const hasGivenUp = error instanceof AcquireTimeoutError || error instanceof WaitTimeoutError;
    forgiveFrozen(attempt);
    if (hasGivenUp || error === controller?.signal.reason) judge.ended(attempt, "no", "gave-up");
    else judge.ended(attempt);
    checkSettled(scene, attempt, waitMs, abortedMs);
    if (!(error instanceof LockError) && error !== controller?.signal.reason) {
      judge.violated("L4", `${process.name}: a call for ${scene.lockName} ended with ${String(error)}`);
    }
  } finally {
    abortion?.cancel();
  }
  return undefined;
}

/** Who stood still settles nothing in time. */
function forgiveFrozen({ operation, process, callMs }: Attempt): void {
  if (operation === undefined || process.resumedAtMs < callMs) return;
  const { waitMs: _, abortedAtMs: __, ...args } = operation.args;
  operation.args = args;
}

/** How long after its deadline a call may settle: the time-outs of the requests that it still has to make. */
export function settleMs({ commandTimeoutMs, kind }: Plan): number {
  // Who wins an election stores its value, and resigns if that fails; a multi-lock gives back what it has; a count-down
  // is sent for two time-outs, and the last time for another.
  const requests = ["election", "multi-lock", "count-down-latch"].includes(kind) ? 4 : 2;
  return requests * (commandTimeoutMs + 50) + SETTLE_MS;
}

/** L4: whoever limits a wait is answered in time, and at once after an abort. */
function checkSettled(
  { member, world, judge, lockName }: Scene,
  attempt: Attempt,
  waitMs: number,
  abortedMs: number,
): void {
  const { process } = member;
  if (process.resumedAtMs >= attempt.callMs) return;
  const limitMs = process.longestTrueMs(waitMs + settleMs(world.setup));
  const tookMs = world.nowMs - attempt.callMs;
  if (tookMs > limitMs) judge.violated("L4", `${process.name}: a call for ${lockName} took ${tookMs.toFixed(0)} ms`);
  if (world.nowMs > abortedMs + process.longestTrueMs(settleMs(world.setup)) && waitMs > 0) {
    judge.violated("L4", `${process.name}: an aborted call for ${lockName} went on`);
  }
}

/** What the session asks for, for the record. */
export function claimOf({ session, world }: Scene): Arguments {
  const { leaseMs, amount } = session;
  if (world.setup.kind === "semaphore") return { leaseMs, permits: amount };
  return world.setup.kind === "read-write-lock" ? { leaseMs, mode: amount <= 2 ? "read" : "write" } : { leaseMs };
}

/** The options of a session's call. */
export function optionsOf({ session }: Scene): Options & { readonly waitMs: number } {
  const { leaseMs, renew, waitMs, id, end, holdMs } = session;
  const options = { leaseMs, renew, waitMs, label: `s${id}` };
  // Who never releases would keep it for ever.
  return end === "drop" && renew ? { ...options, maxHoldMs: Math.max(100, holdMs) } : options;
}

/** See the file header. */
export async function leaseProgram<Held extends Lease>(scene: Scene, leased: Leased<Held>): Promise<void> {
  const { session } = scene;
  const { waitMs, ...options } = optionsOf(scene);
  const end = await call(
    scene,
    (signal) => {
      if (session.isTry) return leased.tryAcquire(options);
      return leased.acquire({ ...options, waitMs, ...(signal === undefined ? {} : { signal }) });
    },
    session.isTry ? 0 : waitMs,
    claimOf(scene),
  );
  if (end === undefined) return;
  const { lease, attempt } = end;
  const views = leased
    .holds(lease)
    .map((held) =>
      scene.judge.granted(attempt, held.lease, held.lockName, held.weight, held.limit, held.own ?? held.lease),
    );
  await holdProgram(scene, lease, views, leased);
}

/** Holds what was granted, and ends it as the session says. */
export async function holdProgram<Held extends Lease>(
  scene: Scene,
  lease: Held,
  views: readonly View[],
  leased: Pick<Leased<Held>, "meanwhile" | "forceRelease" | "canMove">,
): Promise<void> {
  const { session, judge, member } = scene;
  const half = session.holdMs / 2;
  await holdFor(scene, views, half);
  if (session.extendMs !== null) await extend(scene, lease, views, session.extendMs);
  await leased.meanwhile?.(lease, views, scene);
  await holdFor(scene, views, half);
  if (session.end === "drop") return;
  if (session.end === "force" && leased.forceRelease !== undefined) {
    for (const view of views) {
      judge.over(view);
      view.mayBeTaken = true;
    }
    const other = scene.world.members[session.other] ?? member;
    other.process.enter(() => void force(scene, other.process, lease, views, leased));
    await member.process.sleep(session.leaseMs / 4);
  }
  if (session.end === "export" && leased.canMove && lease.validForMs() > 0) {
    await moveOn(scene, lease, views);
    return;
  }
  await release(scene, lease, views);
}

async function force(
  { judge: { recorder } }: Scene,
  process: SimulatedProcess,
  { owner }: Lease,
  views: readonly View[],
  leased: Pick<Leased<never>, "forceRelease">,
): Promise<void> {
  const drafts = views.map(({ lockName, operation }) =>
    recorder.called({ process, lockName, verb: "force-release", owner, leaseId: operation.id }),
  );
  try {
    const outcome = (await leased.forceRelease?.({ owner })) === true ? "ok" : "no";
    for (const draft of drafts) recorder.ended(draft, outcome, outcome === "no" ? "not-owner" : undefined);
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
  }
}

/** Passes time, and looks at the lease now and then. */
export async function holdFor(scene: Scene, views: readonly View[], ms: number): Promise<void> {
  const { member, random, judge, world } = scene;
  const looks = random.whole(0, 2);
  for (let look = 0; look <= looks; look += 1) {
    if (ms > 0) await member.process.sleep(ms / (looks + 1));
    for (const view of views) {
      if (judge.ask(view) > 0 && view.limit === 1) world.resourceOf(view.lockName).write(scene, view);
      judge.checkExclusion(view.lockName);
    }
  }
}

async function extend(scene: Scene, lease: Lease, views: readonly View[], leaseMs: number): Promise<void> {
  const { judge, world } = scene;
  const leftMs = lease.validForMs();
  const startedMs = world.nowMs;
  try {
    await lease.extend(leaseMs);
    checkHeard(scene, views, "extended", startedMs);
    for (const view of views) judge.ask(view);
  } catch (error) {
    const isInTime = world.nowMs - startedMs < leftMs * 0.98 - 1;
    if (error instanceof LeaseLostError && error.reason !== "max-hold" && isInTime)
      refused(scene, views, "an extension", startedMs);
    else if (!(error instanceof LeaseLostError || error instanceof StoreError)) throw error;
  }
}

/** Gives it back, and checks that nobody says it was lost who cannot know. */
export async function release(scene: Scene, lease: Lease, views: readonly View[]): Promise<void> {
  const { judge, world } = scene;
  const leftMs = lease.validForMs();
  const startedMs = world.nowMs;
  for (const view of views) judge.over(view);
  const drafts = releasesOf(scene, views);
  const end = (outcome: Outcome): void => {
    for (const draft of drafts) judge.recorder.ended(draft, outcome, outcome === "no" ? "not-owner" : undefined);
  };
  try {
    const outcome = await lease.release();
    end(outcome === "released" ? "ok" : "no");
    // What another lease on the same hold gave back, or what was lost, was answered before.
    if (outcome === "released" && leftMs > 0) checkHeard(scene, views, "given back", startedMs);
  } catch (error) {
    // Of several locks nobody says which was lost.
    if (error instanceof LeaseLostError && views.length === 1) end("no");
    const isInTime = world.nowMs - startedMs < leftMs * 0.98 - 1;
    if (error instanceof LeaseLostError && error.reason !== "max-hold" && isInTime)
      refused(scene, views, "a release", startedMs);
    else if (!(error instanceof LeaseLostError || error instanceof StoreError)) throw error;
  }
}

/** The records of a release of all of it. */
export function releasesOf({ judge: { recorder }, member }: Scene, views: readonly View[]): Draft[] {
  return views.map(({ lockName, operation, givenBackMs }) => {
    // Of a read-write lock it releases what it has by now, to read or to write.
    const { mode: _, ...args } = operation.args;
    const { owner, id: leaseId } = operation;
    const draft = recorder.called({ process: member.process, lockName, verb: "release", owner, args, leaseId });
    draft.callMs = Math.min(draft.callMs, givenBackMs ?? draft.callMs);
    return draft;
  });
}

/** S5: no success without an answer that has reached the process since it asked. */
function checkHeard(
  { judge, member }: Scene,
  views: readonly View[],
  what: "extended" | "given back",
  sinceMs: number,
): void {
  for (const { own, lockName } of views) {
    if (judge.network.lastHeard(own.owner, what) >= sinceMs) continue;
    judge.violated("S5", `${member.process.name}: a lease of ${lockName} was ${what}, and no answer had reached it`);
  }
}

function refused({ judge, member }: Scene, views: readonly View[], what: string, startedMs: number): void {
  // A clock that was set meanwhile has ended it here.
  if (member.process.partedAtMs >= startedMs) return;
  if (views.some((view) => view.mayBeTaken)) return;
  judge.violated("S1", `${member.process.name}: ${what} of ${views[0]?.lockName} in time was refused`);
}

/** What another process can go on with; undefined if this lease cannot say now what it is, as after a lost answer. */
function exportOf(lease: Lease): ExportedLease | undefined {
  try {
    return lease.export();
  } catch (error) {
    if (error instanceof UnsupportedError) return undefined;
    throw error;
  }
}

async function moveOn(scene: Scene, lease: Lease, views: readonly View[]): Promise<void> {
  const { judge, session, world, random } = scene;
  const exported = exportOf(lease);
  if (exported === undefined) {
    await release(scene, lease, views);
    return;
  }
  for (const view of views) judge.over(view);
  // From now on nobody relies on it here. What the other process makes of it is an acquire of its own.
  releasesOf(scene, views);
  const member = world.members[session.other] ?? scene.member;
  member.process.enter(() => {
    const goOn = async (): Promise<void> => {
      await member.process.sleep(random.between(0, session.leaseMs / 2));
      const [from] = views;
      const calledMs = world.nowMs;
      const adopted = await member.holdfast.adopt(exported).catch((error: unknown) => {
        if (error instanceof LockError) return undefined;
        throw error;
      });
      if (adopted === undefined || from === undefined) return;
      const view = judge.adopted(member.process, adopted, from, calledMs);
      await holdFor({ ...scene, member }, [view], session.holdMs / 2);
      await release({ ...scene, member }, adopted, [view]);
    };
    world.start(goOn, member);
  });
}
