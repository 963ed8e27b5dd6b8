/** Counts the callers of one Holdfast that wait for each object. */
import type { Session } from "holdfast/internal";

const crowds = new WeakMap<Session, Map<string, number>>();

/**
 * Counts one more caller that waits for the object `name`.
 *
 * @param most  maximum number of callers that may wait at a time
 * @returns a function that removes the caller from the count; calling it again does nothing. Undefined if `most`
 *          callers already wait; this caller is then not counted
 */
export function joinCrowd(session: Session, name: string, most: number): (() => void) | undefined {
  const crowd = crowds.get(session) ?? new Map<string, number>();
  crowds.set(session, crowd);
  const size = crowd.get(name) ?? 0;
  if (size >= most) return undefined;
  crowd.set(name, size + 1);
  let hasLeft = false;
  return () => {
    if (hasLeft) return;
    hasLeft = true;
    const left = (crowd.get(name) ?? 1) - 1;
    if (left === 0) crowd.delete(name);
    else crowd.set(name, left);
  };
}
