/** Lists all locks under a prefix, page by page. */

import { show } from "../core/keys.js";
import { checkOneOf, checkWhole } from "../core/options.js";
import type { Store } from "../core/store.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { LOCK_KINDS, type LockEntry, type LockKind } from "./entry.js";
import { type Glob, readGlob } from "./glob.js";
import { inspectCondition, inspectLock } from "./inspect-lock.js";
import { type Trace, traceOf } from "./key-names.js";
import { eachOf, type Identities, identitiesOf, type Place, placeOf } from "./place.js";
import { cursorText, KeyScan, type Progress, readCursor, type Wanted } from "./scan.js";
import { brokenEntry } from "./unreadable.js";

/** Which locks to list. */
export interface SurveyOptions {
  /** A glob pattern for names, with the syntax of SCAN, for example `order:*`. @default all names */
  readonly pattern?: string | undefined;
  /** The kinds to list. @default all kinds */
  readonly kinds?: readonly LockKind[] | undefined;
  /**
   * Lists only locks with a holder whose `host/pid`, client name, owner or label contains this text, and locks whose
   * holders cannot be read.
   * @default all locks
   */
  readonly holder?: string | undefined;
  /**
   * The number of locks per page. A page can have a few more, because a step of SCAN cannot be split. It can have
   * fewer, or none, even if there is a next page, because a page examines a limited number of keys. A whole number from
   * 1 to 10,000.
   * @default 200
   */
  readonly limit?: number | undefined;
  /** The `nextCursor` of the previous page. @default the first page */
  readonly cursor?: string | undefined;
  /** Whether to list free locks too, as long as some of their keys exist. @default false */
  readonly includeFree?: boolean | undefined;
}

/** One page of locks, from `survey`. */
export interface SurveyPage {
  /** The locks, in no particular order. Each kind and name appears once. */
  readonly locks: readonly LockEntry[];
  /** The cursor of the next page. Undefined if this is the last one. */
  readonly nextCursor: string | undefined;
  /** The number of servers that failed to reply for this page or an earlier one. Locks on them are missing. */
  readonly unreachable: number;
}

/** All locks, from `surveyAll`. */
export interface Surveyed {
  /** The locks, in no particular order. Each kind and name appears once, each mutex with all its conditions. */
  readonly locks: readonly LockEntry[];
  /** False if the list ended early because it reached `most`. */
  readonly isComplete: boolean;
  /** The number of servers that did not reply. Their locks are missing. */
  readonly unreachable: number;
}

const SURVEY_OPTIONS = ["pattern", "kinds", "holder", "limit", "cursor", "includeFree"] as const;

/** Maximum number of requests for keys per page. Each examines about 2,000 keys. */
const MOST_STEPS = 50;
/** The number of locks to inspect at a time. */
const AT_ONCE = 50;

interface Wish {
  readonly glob: Glob | undefined;
  readonly kinds: readonly LockKind[];
  readonly holder: string;
  readonly limit: number;
  readonly includeFree: boolean;
}

/**
 * Lists one page of locks. By default, it lists all kinds and omits free locks. It uses SCAN on every primary, never
 * KEYS. Read-only.
 *
 * Every lock that exists from the first page to the last is listed. A lock that is created or removed in between may be
 * missing, as with SCAN. Locks in the formats of other systems are not listed. Most locks appear on one page only.
 * `surveyAll` merges the exceptions:
 *
 * - a mutex with waiters for conditions may appear once more for each such condition
 * - a paused lock without a holder, or an unreadable lock, may appear twice
 *
 * A page costs a limited number of requests. Each of them occupies a server for a few milliseconds at most.
 *
 * @throws StoreError   no server replied; to try again, pass the same cursor
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  invalid option; nothing was sent
 */
export async function survey(holdfast: Holdfast, options: SurveyOptions = {}): Promise<SurveyPage> {
  const wish = checkWish(options);
  const place = { ...placeOf(holdfast), lost: new Set<Store>() };
  const scan = new KeyScan(place, wantedOf(wish));
  const { locks, progress } = await page(place, wish, scan, identitiesOf(place), readCursor(options.cursor));
  return { locks, nextCursor: cursorText(progress), unreachable: progress.unreachable };
}

/**
 * Lists all locks, like `survey`, but without pages. Read-only.
 *
 * @param options  as in `survey`, plus `most`: stop after this many locks. A whole number from 1 to 1,000,000. Default:
 *                 100,000
 * @throws as `survey`
 */
export async function surveyAll(
  holdfast: Holdfast,
  options: Omit<SurveyOptions, "limit" | "cursor"> & { readonly most?: number | undefined } = {},
): Promise<Surveyed> {
  const { most = 100_000, ...rest } = options;
  checkWhole("most", most, 1, 1_000_000);
  const wish = { ...checkWish(rest), limit: 1_000 };
  const place = { ...placeOf(holdfast), lost: new Set<Store>() };
  const scan = new KeyScan(place, wantedOf(wish));
  const identities = identitiesOf(place);
  const found = new Map<string, LockEntry>();
  let progress = readCursor(undefined);
  while (!progress.isOver && found.size < most) {
    const read = await page(place, wish, scan, identities, progress);
    progress = read.progress;
    for (const lock of read.locks) {
      const before = found.get(idOf(lock));
      found.set(idOf(lock), before === undefined ? lock : withConditions(lock, before.conditions));
    }
  }
  return { locks: [...found.values()], isComplete: progress.isOver, unreachable: progress.unreachable };
}

/** A lock, and which of its keys are on a page. */
interface Candidate {
  readonly whose: Trace;
  readonly parts: Set<string>;
  readonly conditions: Set<string>;
}

async function page(
  place: Place,
  wish: Wish,
  scan: KeyScan,
  identities: Identities,
  from: Progress,
): Promise<{ readonly locks: readonly LockEntry[]; readonly progress: Progress }> {
  const found = new Map<string, LockEntry>();
  let progress = from;
  for (let step = 0; step < MOST_STEPS && !progress.isOver && found.size < wish.limit; step += 1) {
    const read = await scan.page(progress, wish.limit - found.size);
    progress = read.progress;
    const seen = await eachOf(candidatesOf(read.rests, wish), AT_ONCE, (one) => examine(place, one, wish, identities));
    for (const lock of seen) {
      if (lock === undefined) continue;
      const before = found.get(idOf(lock));
      found.set(idOf(lock), before === undefined ? lock : withConditions(lock, before.conditions));
    }
  }
  return { locks: [...found.values()], progress: scan.withLost(progress) };
}

function candidatesOf(rests: readonly string[], { glob, kinds }: Wish): Candidate[] {
  const candidates = new Map<string, Candidate>();
  for (const rest of rests) {
    const trace = traceOf(rest);
    if (trace === undefined || !kinds.includes(trace.kind) || glob?.matches(trace.name) === false) continue;
    const id = idOf(trace);
    const candidate = candidates.get(id) ?? { whose: trace, parts: new Set(), conditions: new Set() };
    candidates.set(id, candidate);
    if (trace.condition === undefined) candidate.parts.add(trace.part);
    else candidate.conditions.add(trace.condition);
  }
  return [...candidates.values()];
}

/** Inspects a lock. Returns undefined if the options exclude the lock, or if it is listed via another of its keys. */
async function examine(
  place: Place,
  { whose, parts, conditions }: Candidate,
  { includeFree, holder }: Wish,
  identities: Identities,
): Promise<LockEntry | undefined> {
  const [{ entry, hasFirstKey }, ...inspected] = await Promise.all([
    inspectLock(place, whose, identities, true),
    ...[...conditions].map((condition) => inspectCondition(place, whose, condition, identities)),
  ]);
  const awaited = inspected.flatMap((one) => ("unreadable" in one || one.waiterCount === 0 ? [] : [one]));
  const wrong = inspected.flatMap((one) => ("unreadable" in one ? [one.unreadable] : []));
  const { keys = [], mayBeHeld } = entry.unreadable ?? {};
  // An unreadable lock may appear twice, because no key decides which page lists it. The `holder` filter does not apply
  // to it, because its holders are unknown.
  if (keys.length + wrong.length > 0) return withConditions(brokenEntry(whose, [...keys, ...wrong]), awaited);
  // A lock's keys may be on different pages. List the lock only on the page with its first key. If that is missing, use
  // the key of its queue or pause. If those are missing too, use its token key.
  const isListedHere =
    awaited.length > 0 ||
    parts.has("") ||
    (parts.has("fence") && (whose.key !== undefined || (!hasFirstKey && entry.waiterCount === 0))) ||
    // Waiters may come and go during a pause, so any of these keys suffices. Listing a lock twice is better than
    // missing it.
    ((parts.has("queue") || parts.has("waiters") || parts.has("pause")) && !hasFirstKey);
  if (!isListedHere) return undefined;
  const lock = withConditions(entry, awaited);
  if (lock.state === "free" && !includeFree) return undefined;
  return holder === "" || mayBeHeld || lock.holders.some((one) => isNamed(one, holder)) ? lock : undefined;
}

function isNamed({ host, pid, clientName, owner, label }: LockEntry["holders"][number], text: string): boolean {
  return [`${host}/${pid}`, clientName, owner, label].some((word) => word?.includes(text) === true);
}

/** Returns the lock with additional conditions. */
function withConditions(lock: LockEntry, more: LockEntry["conditions"]): LockEntry {
  if (more.length === 0) return lock;
  const known = new Map([...more, ...lock.conditions].map((condition) => [condition.name, condition]));
  return { ...lock, state: lock.state === "free" ? "awaited" : lock.state, conditions: [...known.values()] };
}

/** Returns a string that identifies a lock among all locks under the prefix. */
export function idOf({ kind, name, key }: Pick<LockEntry, "kind" | "name" | "key">): string {
  return `${kind} ${key === undefined ? "name" : "key"} ${name}`;
}

function wantedOf({ kinds, glob, includeFree }: Wish): Wanted {
  const [only] = kinds;
  const kind = kinds.length === 1 && only !== undefined ? only : "*";
  return { shape: `:${kind}:*{*`, kinds, text: glob?.literal ?? "", includeFree };
}

/** Checks the options and adds the defaults. @throws TypeError, RangeError  invalid option; the message names it */
function checkWish(options: SurveyOptions): Wish {
  const known = checkKnown(options, SURVEY_OPTIONS);
  const { pattern, kinds = LOCK_KINDS, holder = "", limit = 200, includeFree = false } = known;
  const glob = pattern === undefined ? undefined : readGlob(pattern);
  if (!Array.isArray(kinds) || kinds.length === 0 || !kinds.every((kind) => LOCK_KINDS.includes(kind))) {
    throw new TypeError(`kinds must be a non-empty array of ${LOCK_KINDS.join(", ")}; got ${show(kinds)}`);
  }
  if (typeof holder !== "string") throw new TypeError(`holder must be a string; got ${show(holder)}`);
  checkWhole("limit", limit, 1, 10_000);
  checkOneOf("includeFree", includeFree, true, false);
  readCursor(known.cursor);
  return { glob, kinds, holder, limit, includeFree };
}
