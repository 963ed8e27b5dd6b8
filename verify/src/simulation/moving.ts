/** How a lease ends in another process: by a forced release, or by adoption. */
import { type ExportedLease, type Lease, LockError, UnsupportedError } from "holdfast";
import { holdFor, release, releasesOf } from "./holding.js";
import type { SimulatedProcess } from "./process.js";
import type { Scene } from "./scene.js";
import type { View } from "./view.js";

/** Identifies the hold to end. */
export type Whose = { readonly owner: string } | { readonly token: number };

/** A kind whose leases another process can force-release. */
interface Forced {
  forceRelease?(whose: Whose): Promise<boolean>;
}

/** Another process force-releases the lease, whichever process holds it. */
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

/** S3: the token of an ended lease never ends another lease, even if it was the last token. */
export async function forceAgain({ judge, lockName }: Scene, token: number, leased: Forced): Promise<void> {
  try {
    judge.decided("S3 by token");
    if ((await leased.forceRelease?.({ token })) === true)
      judge.violated("S3", `the hold of ${lockName} was ended by the token ${token}, which had been released`);
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
  }
}

/**
 * The data for another process to continue the lease; undefined if this lease cannot be exported now, for example
 * after a lost reply.
 */
function exportOf(lease: Lease): ExportedLease | undefined {
  try {
    return lease.export();
  } catch (error) {
    if (error instanceof UnsupportedError) return undefined;
    throw error;
  }
}

/** Exports the lease to another process, which continues it. */
export async function moveOn(scene: Scene, lease: Lease, views: readonly View[]): Promise<void> {
  const { judge, session, world, random } = scene;
  const exported = exportOf(lease);
  if (exported === undefined) {
    await release(scene, lease, views);
    return;
  }
  for (const view of views) judge.leases.over(view);
  // From now on, this process does not rely on the lease. The adoption in the other process is recorded as an
  // acquire.
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
