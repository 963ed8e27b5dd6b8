/** A lock in detail, for one viewer: with what that viewer may do to it. */
import type { Viewer } from "./access.js";
import type { ActionName, LockAnswer } from "./api.js";
import type { LockDetail } from "./snapshot.js";

/** Kinds that each action is for. */
const FITS: Readonly<Record<ActionName, readonly string[]>> = {
  release: ["mutex", "semaphore", "read-write-lock", "election", "redlock"],
  pause: ["mutex", "semaphore", "read-write-lock", "election"],
  resume: ["mutex", "semaphore", "read-write-lock", "election"],
  resize: ["semaphore"],
  resign: ["election"],
  resolve: [],
};

/** Whether it makes sense to do that to such a lock. */
export function fits(action: ActionName, kind: string): boolean {
  return FITS[action].includes(kind);
}

/** See the file header. A lock that needs another topology can be looked at only. */
export async function lockAnswer(
  detail: LockDetail,
  { viewer, allow, atMs }: { readonly viewer: Viewer; readonly allow: readonly ActionName[]; readonly atMs: number },
): Promise<LockAnswer> {
  const actions: ActionName[] = [];
  for (const action of detail.row.needsTopology === null ? allow : []) {
    if (fits(action, detail.row.kind) && (await viewer.may(action, detail.row.name))) actions.push(action);
  }
  return { v: 1, atMs, ...detail, actions };
}
