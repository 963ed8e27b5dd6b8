/** The details of a lock for one viewer, with the actions that this viewer may use. */
import type { Viewer } from "./access.js";
import type { ActionName, LockAnswer } from "./api.js";
import type { LockDetail } from "./snapshot.js";

/** The kinds of lock that each action applies to. */
const FITS: Readonly<Record<ActionName, readonly string[]>> = {
  release: ["mutex", "semaphore", "read-write-lock", "election", "redlock"],
  pause: ["mutex", "semaphore", "read-write-lock", "election"],
  resume: ["mutex", "semaphore", "read-write-lock", "election"],
  resize: ["semaphore"],
  resign: ["election"],
  resolve: [],
};

/** Whether an action applies to a kind of lock. */
export function fits(action: ActionName, kind: string): boolean {
  return FITS[action].includes(kind);
}

/** Builds the response for one viewer. A lock that needs another topology is read-only. */
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
