/** All locks of a prefix, page by page. */
import type { Holdfast } from "../index.js";
import { checkKnown, checkWhole, show } from "../internal.js";
import { LOCK_KINDS, type LockEntry, type LockKind } from "./entry.js";
import { type Glob, readGlob } from "./glob.js";
import { type Trace, traceOf } from "./key-names.js";
import { look, lookAtCondition } from "./look.js";
import { eachOf, type Identities, identitiesOf, type Place, placeOf } from "./place.js";
import { cursorText, KeyScan, type Progress, readCursor, type Wanted } from "./scan.js";
import { brokenEntry } from "./unreadable.js";

/** Which locks to list. */
export interface SurveyOptions {
  /** Names, as SCAN has patterns: `order:*`. @default all */
  readonly pattern?: string | undefined;
  /** @default all kinds */
  readonly kinds?: readonly LockKind[] | undefined;
  /** Only what somebody holds whose host, client name, owner or label has this text in it. @default anybody */
  readonly holder?: string | undefined;
  /**
   * When a page is full. It may have a few more, since a step of SCAN cannot be cut; and fewer, or none, although there
   * is a next page, since a page looks at so many keys at most. Whole number, 1 to 10,000.
   * @default 200
   */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. @default the first page */
  readonly cursor?: string | undefined;
  /** Also what is free, as far as its keys are still there. @default false */
  readonly includeFree?: boolean | undefined;
}

/** One page of a list. */
export interface SurveyPage {
  /** In no order; each kind and name once. */
  readonly locks: readonly LockEntry[];
  /** For the next page; undefined if this is the last one. */
  readonly nextCursor: string | undefined;
  /** How many servers did not answer since the first page: what is on them is missing. */
  readonly unreachable: number;
}

/** All locks at once. */
export interface Surveyed {
  /** In no order; each kind and name once, each mutex with all its conditions. */
  readonly locks: readonly LockEntry[];
  /** False if there are more than `most`. */
  readonly isComplete: boolean;
  /** As of `SurveyPage`. */
  readonly unreachable: number;
}

const SURVEY_OPTIONS = ["pattern", "kinds", "holder", "limit", "cursor", "includeFree"] as const;

/** How many requests for keys one page may cost; each looks at 2,000 keys. */
const MOST_STEPS = 50;
/** How many locks are looked at at a time. */
const AT_ONCE = 50;

interface Wish {
  readonly glob: Glob | undefined;
  readonly kinds: readonly LockKind[];
  readonly holder: string;
  readonly limit: number;
  readonly includeFree: boolean;
}

/**
 * One page of the locks that are held, awaited or paused, of every kind, by SCAN over every primary; never by KEYS.
 *
 * As with SCAN, what is there from the first page to the last is listed; what comes or goes meanwhile may be, or not. A lock
 * is on one page, but for a mutex with waiters for a condition, which may come once more for each such condition, and a paused
 * lock for which others wait, or one that cannot be read, which may come twice; see `surveyAll`. Locks in the formats of other systems are not listed. A page costs a bounded number of requests, each of
 * which keeps a server busy for a few milliseconds at most. Changes nothing.
 *
 * @throws StoreError   no server answered
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  a wrong option; nothing was sent
 */
export async function survey(holdfast: Holdfast, options: SurveyOptions = {}): Promise<SurveyPage> {
  const wish = checkWish(options);
  const place = placeOf(holdfast);
  const scan = new KeyScan(place, wantedOf(wish));
  const { locks, progress } = await page(place, wish, scan, identitiesOf(place), readCursor(options.cursor));
  return { locks, nextCursor: cursorText(progress), unreachable: progress.unreachable };
}

/**
 * All pages of `survey` as one.
 *
 * @param options  as of `survey`, and `most`: how many locks to stop after; whole number, 1 to 1,000,000, by default 100,000
 * @throws as `survey`
 */
export async function surveyAll(
  holdfast: Holdfast,
  options: Omit<SurveyOptions, "limit" | "cursor"> & { readonly most?: number | undefined } = {},
): Promise<Surveyed> {
  const { most = 100_000, ...rest } = options;
  checkWhole("most", most, 1, 1_000_000);
  const wish = { ...checkWish(rest), limit: 1_000 };
  const place = placeOf(holdfast);
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

/** What the keys of one lock on a page say. */
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
  return { locks: [...found.values()], progress };
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

/** The lock, unless it is not wanted, or is listed by another of its keys. */
async function examine(
  place: Place,
  { whose, parts, conditions }: Candidate,
  { includeFree, holder }: Wish,
  identities: Identities,
): Promise<LockEntry | undefined> {
  const [{ entry, hasFirstKey }, ...looked] = await Promise.all([
    look(place, whose, identities),
    ...[...conditions].map((condition) => lookAtCondition(place, whose, condition, identities)),
  ]);
  const awaited = looked.flatMap((one) => ("unreadable" in one || one.waiterCount === 0 ? [] : [one]));
  const wrong = looked.flatMap((one) => ("unreadable" in one ? [one.unreadable] : []));
  const { keys = [] } = entry.unreadable ?? {};
  // Of these no key tells where it is listed: rather twice than never. Whoever holds it cannot be asked for.
  if (keys.length + wrong.length > 0) return withConditions(brokenEntry(whose, [...keys, ...wrong]), awaited);
  // A lock has several keys, which come on different pages: the first one lists it, or else the next.
  const isListedHere =
    awaited.length > 0 ||
    parts.has("") ||
    (parts.has("fence") && (whose.key !== undefined || (!hasFirstKey && entry.waiterCount === 0))) ||
    // Those who wait may come and go during a pause: rather twice than never.
    ((parts.has("queue") || parts.has("waiters") || parts.has("pause")) && !hasFirstKey);
  if (!isListedHere) return undefined;
  const lock = withConditions(entry, awaited);
  if (lock.state === "free" && !includeFree) return undefined;
  return holder === "" || lock.holders.some((one) => isNamed(one, holder)) ? lock : undefined;
}

function isNamed({ host, pid, clientName, owner, label }: LockEntry["holders"][number], text: string): boolean {
  return [`${host}/${pid}`, clientName, owner, label].some((word) => word?.includes(text) === true);
}

/** The lock, and who waits for its conditions besides. */
function withConditions(lock: LockEntry, more: LockEntry["conditions"]): LockEntry {
  if (more.length === 0) return lock;
  const known = new Map([...more, ...lock.conditions].map((condition) => [condition.name, condition]));
  return { ...lock, state: lock.state === "free" ? "awaited" : lock.state, conditions: [...known.values()] };
}

/** What tells one lock from all others. */
export function idOf({ kind, name, key }: Pick<LockEntry, "kind" | "name" | "key">): string {
  return `${kind} ${key === undefined ? "name" : "key"} ${name}`;
}

function wantedOf({ kinds, glob, includeFree }: Wish): Wanted {
  const [only] = kinds;
  const kind = kinds.length === 1 && only !== undefined ? only : "*";
  return { shape: `:${kind}:*{*`, kinds, text: glob?.literal ?? "", includeFree };
}

/** @throws TypeError, RangeError  a wrong option; the message names it, its range and what came */
function checkWish(options: SurveyOptions): Wish {
  const known = checkKnown(options, SURVEY_OPTIONS);
  const { pattern, kinds = LOCK_KINDS, holder = "", limit = 200, includeFree = false } = known;
  const glob = pattern === undefined ? undefined : readGlob(pattern);
  if (!Array.isArray(kinds) || kinds.length === 0 || !kinds.every((kind) => LOCK_KINDS.includes(kind))) {
    throw new TypeError(`kinds must be an array of ${LOCK_KINDS.join(", ")}; got ${show(kinds)}`);
  }
  if (typeof holder !== "string") throw new TypeError(`holder must be a string; got ${show(holder)}`);
  checkWhole("limit", limit, 1, 10_000);
  if (typeof includeFree !== "boolean")
    throw new TypeError(`includeFree must be true or false; got ${show(includeFree)}`);
  readCursor(known.cursor);
  return { glob, kinds, holder, limit, includeFree };
}
