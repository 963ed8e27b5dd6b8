/** The details of one lock: holders, queue, history, and why the next waiter does not hold it. */
import { type LockEntry, lookUp } from "holdfast/admin";
import type { GraceView, LockRow, Samples } from "./api.js";
import type { Backend } from "./backend.js";
import { explain } from "./explain.js";
import { readLockHistory } from "./history.js";
import { mappedEntry } from "./locks.js";
import type { LockPlace } from "./place.js";
import { badRequest } from "./problem.js";
import type { LockDetail } from "./snapshot.js";
import { holdersOf, idOf, leaderOf, pauseOf, queueOf, rowOf, type ViewContext } from "./views.js";
import type { Waits } from "./waits.js";

/** What the reader knows besides the lock's own state. */
export interface Around {
  readonly context: ViewContext;
  readonly grace: GraceView | null;
  readonly isDead: (clientId: string) => boolean | null;
  readonly samples: Samples;
  readonly waits: Waits;
  /** The lock's row in the list, so that both pages agree; undefined if it is not listed. */
  readonly row: LockRow | undefined;
  /** The details as previously shown. */
  readonly old: LockDetail | undefined;
}

/** Reads the details. @throws errors from the library */
export async function readDetail(backend: Backend, place: LockPlace, around: Around): Promise<LockDetail> {
  const { context, old, waits } = around;
  const [{ entry, otherKinds }, history] = await Promise.all([
    readEntry(backend, place),
    readLockHistory(backend, place.name, context),
  ]);
  const key = idOf(place);
  const holders = holdersOf(entry.holders, context, old?.holders);
  const seen = waits.see(
    key,
    entry.waiters.map(({ owner }) => owner),
    context.nowMs,
  );
  return {
    row: around.row ?? rowOf(entry, context, around.samples, old?.row),
    holders,
    waiters: queueOf(entry.waiters, context, seen),
    explain: explain(entry, {
      grace: around.grace,
      serverCount: backend.servers().length,
      pause: pauseOf(entry),
      holders,
      isDead: around.isDead,
    }),
    history,
    otherKinds,
    leader: leaderOf(entry, context, old?.leader),
  };
}

/** Reads the lock, and which other kinds use its name. @throws errors from the library */
export async function readEntry(
  { holdfast }: Backend,
  place: LockPlace,
): Promise<{ readonly entry: LockEntry; readonly otherKinds: readonly string[] }> {
  const entries = await lookUp(holdfast, place.name, { includeFree: true });
  const entry =
    place.key === undefined ? entries.find(({ kind }) => kind === place.kind) : await mappedEntry(holdfast, place);
  if (entry === undefined) throw badRequest(`this topology has no locks of kind ${place.kind}`);
  const otherKinds = entries
    .filter(({ kind, state }) => kind !== place.kind && state !== "free")
    .map(({ kind }) => kind);
  return { entry, otherKinds };
}
