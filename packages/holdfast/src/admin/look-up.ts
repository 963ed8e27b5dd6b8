/** All that one name is used as. */
import { checkName } from "../core/names.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { LOCK_KINDS, type LockEntry } from "./entry.js";
import { exactly } from "./glob.js";
import { look } from "./look.js";
import { identitiesOf, placeOf } from "./place.js";
import { surveyAll, withConditions } from "./survey.js";

/** What to look for. */
export interface LookUpOptions {
  /** Also the kinds that are free. @default false */
  readonly includeFree?: boolean;
  /** Also who waits for conditions of the mutex. Only SCAN finds them, so that this costs what `surveyAll` does. @default false */
  readonly includeConditions?: boolean;
}

/**
 * Every kind of that name which is held, awaited, paused, counting, gathering or broken. The requests leave together, and
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
  const { includeFree = false, includeConditions = false } = checkKnown(options, ["includeFree", "includeConditions"]);
  const place = placeOf(holdfast);
  const identities = identitiesOf(place);
  const isQuorum = place.servers !== undefined;
  const kinds = LOCK_KINDS.filter((kind) => (kind === "redlock") === isQuorum);
  const [looked, conditions] = await Promise.all([
    Promise.all(kinds.map((kind) => look(place, { kind, name, key: undefined }, identities))),
    includeConditions && !isQuorum ? conditionsOf(holdfast, name) : [],
  ]);
  return looked.flatMap(({ entry: found }) => {
    const entry = found.kind === "mutex" ? withConditions(found, conditions) : found;
    return includeFree || entry.state !== "free" ? [entry] : [];
  });
}

/** @throws as `surveyAll` */
async function conditionsOf(holdfast: Holdfast, name: string): Promise<LockEntry["conditions"]> {
  const { locks } = await surveyAll(holdfast, { pattern: exactly(name), kinds: ["mutex"] });
  return locks.flatMap(({ key, conditions }) => (key === undefined ? conditions : []));
}
