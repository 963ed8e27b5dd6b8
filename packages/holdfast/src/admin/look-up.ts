/** All that one name is used as. */
import type { Holdfast } from "../index.js";
import { checkKnown, checkName } from "../internal.js";
import { LOCK_KINDS, type LockEntry } from "./entry.js";
import { exactly } from "./glob.js";
import { look } from "./look.js";
import { identitiesOf, placeOf } from "./place.js";
import { type Surveyed, surveyAll } from "./survey.js";

/** What to look for. */
export interface LookUpOptions {
  /** Also the kinds that are free. @default false */
  readonly includeFree?: boolean | undefined;
}

/**
 * Every kind of that name which is held, awaited, paused, counting, gathering or broken. Who waits for conditions of the mutex
 * is not among them: `lookUpConditions`. The requests leave together, and
 * those for the records of the clients that they name after them. Changes nothing.
 *
 * @param name  1 to 512 bytes
 * @returns in the order of `LOCK_KINDS`; empty if the name is free
 * @throws StoreError   a server did not answer. @throws QuorumError  no majority of several did
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  a wrong name or option; nothing was sent
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
  const isQuorum = place.servers !== undefined;
  const kinds = LOCK_KINDS.filter((kind) => (kind === "redlock") === isQuorum);
  const looked = await Promise.all(kinds.map((kind) => look(place, { kind, name, key: undefined }, identities)));
  return looked.flatMap(({ entry }) => (includeFree || entry.state !== "free" ? [entry] : []));
}

/**
 * The mutex of that name with all its conditions for which somebody waits. Only SCAN finds those, so that this costs what
 * `surveyAll` does, and takes the same rights. Changes nothing.
 *
 * @param name  1 to 512 bytes
 * @returns as `surveyAll`: of `locks` the mutex of that name alone, or none if it is free and nobody waits
 * @throws as `surveyAll`; TypeError, RangeError  a wrong name; nothing was sent
 */
export async function lookUpConditions(holdfast: Holdfast, name: string): Promise<Surveyed> {
  checkName(name);
  const { locks, ...extent } = await surveyAll(holdfast, { pattern: exactly(name), kinds: ["mutex"] });
  return { locks: locks.filter(({ key }) => key === undefined), ...extent };
}
