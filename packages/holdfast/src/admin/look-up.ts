/** Finds the locks of all kinds with a given name. */

import { checkName } from "../core/keys.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { LOCK_KINDS, type LockEntry } from "./entry.js";
import { exactly } from "./glob.js";
import { inspectLock } from "./inspect-lock.js";
import { identitiesOf, placeOf } from "./place.js";
import { type Surveyed, surveyAll } from "./survey.js";

/** Options of `lookUp`. */
export interface LookUpOptions {
  /** Whether to return free locks too. @default false */
  readonly includeFree?: boolean | undefined;
}

/**
 * Finds the locks of all kinds with this name, by default without free ones. The result includes locks of clients that
 * use a different topology (`needsTopology`). Waiters for conditions of a mutex are missing; `lookUpConditions` finds
 * them. Read-only.
 *
 * It sends the requests for all kinds together, and then the requests for the records of the clients.
 *
 * @param name  1 to 512 bytes
 * @returns the locks in the order of `LOCK_KINDS`; empty if the name is free
 * @throws StoreError   a server did not reply
 * @throws QuorumError  no majority of several independent servers replied
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  invalid name or option; nothing was sent
 */
export async function lookUp(
  holdfast: Holdfast,
  name: string,
  options: LookUpOptions = {},
): Promise<readonly LockEntry[]> {
  checkName(name);
  const { includeFree = false } = checkKnown(options, ["includeFree"]);
  const place = placeOf(holdfast);
  const identities = identitiesOf(place);
  const inspected = await Promise.all(
    LOCK_KINDS.map((kind) => inspectLock(place, { kind, name, key: undefined }, identities)),
  );
  const [{ refusal } = { refusal: undefined }] = inspected;
  // If the Redis user is not allowed to read any lock, throw the error instead of listing locks that may not exist.
  if (inspected.every((one) => one.refusal !== undefined)) throw refusal;
  return inspected.flatMap(({ entry }) => {
    const isListed = entry.state !== "free" || (includeFree && entry.needsTopology === undefined);
    return isListed ? [entry] : [];
  });
}

/**
 * Finds the mutex with this name and all its conditions that have waiters. Conditions can be found only with SCAN, so
 * this costs as much as `surveyAll` and needs the same permissions. Read-only.
 *
 * @param name  1 to 512 bytes
 * @returns as `surveyAll`. `locks` has only the mutex, or is empty if the mutex is free and its conditions have no
 *          waiters
 * @throws TypeError, RangeError  invalid name; nothing was sent
 * @throws the other errors of `surveyAll`
 */
export async function lookUpConditions(holdfast: Holdfast, name: string): Promise<Surveyed> {
  checkName(name);
  const { locks, ...extent } = await surveyAll(holdfast, { pattern: exactly(name), kinds: ["mutex"] });
  return { locks: locks.filter(({ key }) => key === undefined), ...extent };
}
