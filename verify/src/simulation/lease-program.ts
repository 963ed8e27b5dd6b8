/** What a caller does with any kind of lease: acquires it, holds it, and ends it in one of several ways. */
import type { Lease, ReleaseOutcome } from "holdfast";
import { call, claimOf, type Options, optionsOf } from "./calling.js";
import { extend, hasHeard, holdFor, release } from "./holding.js";
import { BackgroundHold, type Run } from "./in-background.js";
import { force, forceAgain, moveOn, type Whose } from "./moving.js";
import type { Scene } from "./scene.js";
import type { View } from "./view.js";

/** One kind of lock for the program. */
export interface Leased<Held extends Lease> {
  acquire(options: Options & { readonly waitMs: number; readonly signal?: AbortSignal }): Promise<Held>;
  tryAcquire(options: Options): Promise<Held | null>;
  /** Acquires, works and releases; absent for a kind that is not used via `run`. */
  readonly run?: Run<Held>;
  /** The locks of the lease, with their weights and limits. */
  holds(lease: Held): readonly {
    readonly lockName: string;
    readonly lease: Lease;
    readonly weight: number;
    readonly limit: number;
    readonly own?: Lease;
  }[];
  /** Additional operations of the kind while the lease is held. */
  meanwhile?(lease: Held, views: readonly View[], scene: Scene): Promise<void>;
  forceRelease?(whose: Whose): Promise<boolean>;
  readonly canMove: boolean;
}

/** Runs the program of a session. */
export async function leaseProgram<Held extends Lease>(scene: Scene, leased: Leased<Held>): Promise<void> {
  const { session } = scene;
  const { waitMs, ...options } = optionsOf(scene);
  const isRun = session.way === "in-background" && leased.run !== undefined;
  const background = isRun ? new BackgroundHold(scene, leased.run) : undefined;
  const end = await call(
    scene,
    (signal) => {
      if (session.isTry) return leased.tryAcquire(options);
      const waiting = { ...options, waitMs, ...(signal === undefined ? {} : { signal }) };
      return (background ?? leased).acquire(waiting);
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
  await holdProgram(scene, lease, views, leased, background && (() => background.release(lease)));
}

/**
 * Holds a grant, and ends it as the session specifies.
 *
 * @param giveBack  how to release it, if not via the lease itself
 */
export async function holdProgram<Held extends Lease>(
  scene: Scene,
  lease: Held,
  views: readonly View[],
  leased: Pick<Leased<Held>, "meanwhile" | "forceRelease" | "canMove">,
  giveBack?: () => Promise<ReleaseOutcome>,
): Promise<void> {
  const { session, judge, member } = scene;
  const half = session.holdMs / 2;
  await holdFor(scene, views, half);
  if (session.extendMs !== null) await extend(scene, lease, views, session.extendMs);
  await leased.meanwhile?.(lease, views, scene);
  await holdFor(scene, views, half);
  if (session.end === "drop") return;
  if (session.end === "force" && leased.forceRelease !== undefined) {
    const other = scene.world.members[session.other] ?? member;
    // Runs only if the other process runs; until then, the lease continues here.
    other.process.enter(() => {
      for (const view of views) judge.leases.taken(view);
      void force(scene, other.process, lease, views, leased);
    });
    await member.process.sleep(session.leaseMs / 4);
  }
  if (session.end === "export" && leased.canMove && lease.validForMs() > 0) {
    await moveOn(scene, lease, views);
    return;
  }
  const givenBackMs = scene.world.nowMs;
  const isOver = await release(scene, lease, views, giveBack);
  // A late holder knows that there was no other grant, but the server may not have processed the end of the lease
  // yet.
  const isOnRecord = views.every((view) => hasHeard(scene, view, "given back", givenBackMs));
  if (session.way === "by-token" && isOver && isOnRecord) await forceAgain(scene, lease.token, leased);
}
