/** How a lease ends in the hands of another process: taken by force, or adopted. */
import { type ExportedLease, type Lease, LockError, UnsupportedError } from "holdfast";
import { holdFor, release, releasesOf } from "./holding.js";
import type { SimulatedProcess } from "./process.js";
import type { Scene } from "./scene.js";
import type { View } from "./view.js";

/** Whose hold is ended by force. */
export type Whose = { readonly owner: string } | { readonly token: number };

/** A kind whose leases another process may end by force. */
interface Forced {
  forceRelease?(whose: Whose): Promise<boolean>;
}

/** Another process ends the lease, whichever process has it. */
export async function force(
  { judge: { recorder }, session }: Scene,
  process: SimulatedProcess,
  { owner, token }: Lease,
  views: readonly View[],
  leased: Forced,
): Promise<void> {
  const drafts = views.map(({ lockName, operation }) =>
    recorder.called({ process, lockName, verb: "force-release", owner, leaseId: operation.id }),
  );
  try {
    const outcome =
      (await leased.forceRelease?.(session.way === "by-token" ? { token } : { owner })) === true ? "ok" : "no";
    for (const draft of drafts) recorder.ended(draft, outcome, outcome === "no" ? "not-owner" : undefined);
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
  }
}

/** S3: the token of a lease that is over never ends another lease, even if it was the last token. */
export async function forceAgain({ judge, lockName }: Scene, token: number, leased: Forced): Promise<void> {
  try {
    judge.decided("S3 by token");
    if ((await leased.forceRelease?.({ token })) === true)
      judge.violated("S3", `the hold of ${lockName} was ended by the token ${token}, which had been given back`);
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
  }
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

/** Gives the lease to another process, which goes on with it. */
export async function moveOn(scene: Scene, lease: Lease, views: readonly View[]): Promise<void> {
  const { judge, session, world, random } = scene;
  const exported = exportOf(lease);
  if (exported === undefined) {
    await release(scene, lease, views);
    return;
  }
  for (const view of views) judge.leases.over(view);
  // From now on, this process does not rely on it. What the other process makes of it is an acquire of its own.
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
