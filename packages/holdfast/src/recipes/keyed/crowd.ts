/** How many callers of one Holdfast wait for each object. */
import type { Session } from "../../internal.js";

const crowds = new WeakMap<Session, Map<string, number>>();

/**
 * One more waits for that object.
 *
 * @returns ends that; a second call does nothing. Undefined, and it does not count, if `most` wait already
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
