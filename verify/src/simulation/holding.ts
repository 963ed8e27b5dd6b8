/** The operations of a caller on its lease: inspect, extend, release. */
import { type Lease, LeaseLostError, type ReleaseOutcome, StoreError } from "holdfast";
import type { Outcome } from "../history/index.js";
import type { Draft } from "./draft.js";
import type { Scene } from "./scene.js";
import type { View } from "./view.js";

/** Waits, and checks the lease occasionally. */
export async function holdFor(scene: Scene, views: readonly View[], ms: number): Promise<void> {
  const { member, random, judge, world } = scene;
  const looks = random.whole(0, 2);
  for (let look = 0; look <= looks; look += 1) {
    if (ms > 0) await member.process.sleep(ms / (looks + 1));
    for (const view of views) {
      // If locks are stolen, only tokens protect the resource.
      const mayWrite = view.limit === 1 || (world.setup.requests !== undefined && view.weight === view.limit);
      if (judge.leases.ask(view) > 0 && mayWrite) world.resourceOf(view.lockName).write(scene, view);
      judge.leases.checkExclusion(view.lockName);
    }
  }
}

/** Extends the lease, and checks that it is refused only if that is possible. */
export async function extend(scene: Scene, lease: Lease, views: readonly View[], leaseMs: number): Promise<void> {
  const { judge, world } = scene;
  const leftMs = lease.validForMs();
  const startedMs = world.nowMs;
  try {
    await lease.extend(leaseMs);
    checkHeard(scene, views, "extended", startedMs);
    for (const view of views) judge.leases.ask(view);
  } catch (error) {
    const isInTime = world.nowMs - startedMs < leftMs * 0.98 - 1;
    if (error instanceof LeaseLostError && error.reason !== "max-hold" && isInTime)
      refused(scene, views, "an extension", startedMs);
    else if (!(error instanceof LeaseLostError || error instanceof StoreError)) throw error;
  }
}

/**
 * Releases the lease, and checks that a loss is reported only if that is possible. @returns whether it was released
 */
export async function release(
  scene: Scene,
  lease: Lease,
  views: readonly View[],
  giveBack: () => Promise<ReleaseOutcome> = () => lease.release(),
): Promise<boolean> {
  const { judge, world } = scene;
  const leftMs = lease.validForMs();
  if (scene.session.crowd !== undefined) judge.passMoment();
  const startedMs = world.nowMs;
  for (const view of views) judge.leases.over(view);
  const drafts = releasesOf(scene, views);
  const end = (outcome: Outcome): void => {
    for (const draft of drafts) judge.recorder.ended(draft, outcome, outcome === "no" ? "not-owner" : undefined);
  };
  try {
    const outcome = await giveBack();
    // A holder that passes the lock on locally sends no request, so it does not know about a forced release yet.
    const isInDoubt = views.some(
      (view) => judge.leases.isTaken(view) && !hasHeard(scene, view, "given back", startedMs),
    );
    if (outcome === "released") end(isInDoubt ? "info" : "ok");
    // A multi-lock does not report which member was lost.
    else if (views.length === 1) end("no");
    // If another lease of the same hold has released it, or if it was lost, the reply came earlier.
    if (outcome === "released" && leftMs > 0) checkHeard(scene, views, "given back", startedMs);
    return outcome === "released";
  } catch (error) {
    if (error instanceof LeaseLostError && views.length === 1) end("no");
    const isInTime = world.nowMs - startedMs < leftMs * 0.98 - 1;
    if (error instanceof LeaseLostError && error.reason !== "max-hold" && isInTime)
      refused(scene, views, "a release", startedMs);
    else if (!(error instanceof LeaseLostError || error instanceof StoreError)) throw error;
    return false;
  }
}

/** The records of a release of the whole lock. */
export function releasesOf({ judge: { recorder }, member }: Scene, views: readonly View[]): Draft[] {
  return views.map(({ lockName, operation, givenBackMs }) => {
    // A read-write lock is released in its current mode.
    const { mode: _, ...args } = operation.args;
    const { owner, id: leaseId } = operation;
    const draft = recorder.called({ process: member.process, lockName, verb: "release", owner, args, leaseId });
    draft.callMs = Math.min(draft.callMs, givenBackMs ?? draft.callMs);
    return draft;
  });
}

/**
 * S5: every reported success requires a reply that reached the process after the request, or the next lease of its
 * claim.
 *
 * @param orElse  another sufficient reply: a late release extends first, which shows that there was no other grant
 */
export function checkHeard(
  scene: Scene,
  views: readonly View[],
  what: "extended" | "given back",
  sinceMs: number,
  orElse: "extended" | "given back" = what,
): void {
  const { judge, member } = scene;
  for (const view of views) {
    if (hasHeard(scene, view, what, sinceMs) || hasHeard(scene, view, orElse, sinceMs)) continue;
    const { own, lockName, turn } = view;
    const text = `${member.process.name}: a lease of ${lockName} was ${what}, but no reply had reached it`;
    if (what === "given back" && judge.queues.shared.handedOn(own.owner, turn, text)) continue;
    judge.violated("S5", text);
  }
}

/** Whether a reply that says so has reached the process since then. */
export function hasHeard({ judge }: Scene, { own }: View, what: "extended" | "given back", sinceMs: number): boolean {
  return judge.network.lastHeard(own.owner, what) >= sinceMs;
}

function refused({ judge, member }: Scene, views: readonly View[], what: string, startedMs: number): void {
  // A clock step in the meantime has ended the lease locally.
  if (member.process.partedAtMs >= startedMs) return;
  if (views.some((view) => view.mayBeTaken)) return;
  judge.violated("S1", `${member.process.name}: ${what} of ${views[0]?.lockName} in time was refused`);
}
