/** Reads the history of one name or of all names, newest first. */

import { call } from "../core/call.js";
import { checkName, show } from "../core/keys.js";
import { checkWhole } from "../core/options.js";
import { parseOwner } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import { adminReadHistory } from "../generated/admin.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { type EntryHolder, LOCK_KINDS } from "./entry.js";
import { readGlob } from "./glob.js";
import { historyKey } from "./history.js";
import {
  CHANGING,
  entriesOf,
  HISTORY_OUTCOMES,
  type HistoryEntry,
  type HistoryOutcome,
  type OpenOutcome,
  openIn,
  type ReadEvent,
} from "./history-entries.js";
import { inspectLock } from "./inspect-lock.js";
import { unescaped } from "./key-names.js";
import { nothingIfMistyped } from "./mistyped.js";
import { onServers } from "./on-servers.js";
import { leaseMsIn } from "./owners.js";
import { eachOf, type Identities, identitiesOf, type Place, placeOf } from "./place.js";
import { KeyScan, START } from "./scan.js";

/** Options of `readHistory`. */
export interface ReadHistoryOptions {
  /** The name of the lock, 1 to 512 bytes. @default all names with a history */
  readonly name?: string | undefined;
  /** A glob pattern for names, with the syntax of SCAN. Use it instead of `name`. */
  readonly pattern?: string | undefined;
  /** How far back from now to read, in ms. A whole number from 1 to 31,536,000,000, a year. @default a day */
  readonly sinceMs?: number | undefined;
  /** Reads only entries with this outcome, or with any of these outcomes. @default all */
  readonly outcome?: HistoryOutcome | readonly HistoryOutcome[] | undefined;
  /** Maximum number of entries to return. A whole number from 1 to 10,000. @default 50 */
  readonly limit?: number | undefined;
}

const OPTIONS = ["name", "pattern", "sinceMs", "outcome", "limit"] as const;
const A_DAY_MS = 86_400_000;
/** The number of events that one request reads. */
const PAGE = 500;
/** Maximum number of events of one name to read when searching for matching entries. */
const MOST_READ = 10_000;
/** Maximum number of names to read. SCAN decides which names come first. */
const MOST_NAMES = 10_000;
const AT_ONCE = 20;
/** Maximum number of holders that an inspection of a lock returns. */
const MOST_HOLDERS = 1_000;

/**
 * Reads what has happened to locks, newest first, with one entry per hold. Finds what was recorded
 * by `recordHistory`, by `appendHistory`, or by a recipe or integration with a `history` option. Read-only.
 *
 * Without `name`, it reads the histories of up to 10,000 names. That takes a SCAN and one or more requests per name.
 * With several independent servers or a cluster, it leaves out what only a server that does not reply has.
 *
 * @throws StoreError   no server replied, or a server did not reply to a read of a history that only it has
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  invalid option; nothing was sent
 */
export async function readHistory(
  holdfast: Holdfast,
  options: ReadHistoryOptions = {},
): Promise<readonly HistoryEntry[]> {
  return (await searchHistory(holdfast, options)).entries;
}

/** The result of `searchHistory`. */
export interface FoundHistory {
  readonly entries: readonly HistoryEntry[];
  /** False if there may be more entries: the search reached the limit, or the maximum number of events or names. */
  readonly isComplete: boolean;
  /** The number of servers that did not reply. What only they have is missing. */
  readonly unreachable: number;
}

/** Like `readHistory`, but also returns whether entries may be missing, and why. @throws as `readHistory` */
export async function searchHistory(holdfast: Holdfast, options: ReadHistoryOptions = {}): Promise<FoundHistory> {
  const { name, pattern, sinceMs = A_DAY_MS, outcome = HISTORY_OUTCOMES, limit = 50 } = checkKnown(options, OPTIONS);
  if (name !== undefined) checkName(name);
  const glob = pattern === undefined ? undefined : readGlob(pattern);
  checkWhole("sinceMs", sinceMs, 1, 31_536_000_000);
  checkWhole("limit", limit, 1, 10_000);
  const outcomes: readonly unknown[] = Array.isArray(outcome) ? outcome : [outcome];
  const wrong = outcomes.find((one) => !HISTORY_OUTCOMES.includes(one as HistoryOutcome));
  if (wrong !== undefined || outcomes.length === 0) {
    const got = wrong === undefined ? "an empty array" : show(wrong);
    throw new TypeError(`outcome must be one or more of ${HISTORY_OUTCOMES.join(", ")}; got ${got}`);
  }
  const lost = new Set<Store>();
  const place = { ...placeOf(holdfast), lost, missed: new Set<Store>() };
  const { names, hasAll, countUnreachable } =
    name === undefined
      ? await namesOf(place, glob?.literal ?? "")
      : { names: [name], hasAll: true, countUnreachable: () => lost.size };
  const chosen = glob === undefined ? names : names.filter((one) => glob.matches(one));
  const isWanted = (entry: HistoryEntry): boolean => outcomes.includes(entry.outcome);
  const identities = identitiesOf(place);
  // If no end of a hold is recorded, only an inspection of the lock shows whether the hold continues. Inspect only if
  // such holds are wanted.
  const isOpenWanted = OPEN_OUTCOMES.some((one) => outcomes.includes(one));
  const wish = { sinceMs, limit, isWanted, isOpenWanted };
  const each = await eachOf(chosen, AT_ONCE, (one) => historyOf(place, one, identities, wish));
  const found = each.flatMap(({ entries }) => entries).toSorted((one, other) => other.atMs - one.atMs);
  const isComplete = hasAll && found.length <= limit && each.every((one) => one.isComplete);
  // A server that refused some of the reads was still asked for the others, but it counts as well.
  for (const store of place.missed) lost.add(store);
  return { entries: found.slice(0, limit), isComplete, unreachable: countUnreachable() };
}

/** A place that also collects the servers from which a history could not be read, for whatever reason. */
interface Source extends Place {
  readonly missed: Set<Store>;
}

interface Names {
  readonly names: readonly string[];
  readonly hasAll: boolean;
  /** Returns the number of servers that did not reply to the list of names or have been lost since, each counted once. */
  countUnreachable(): number;
}

/** Returns the names that have a history, whether the list is complete, and what it lacks. @throws StoreError */
async function namesOf(place: Place, text: string): Promise<Names> {
  const scan = new KeyScan(place, { shape: ":history:{*", kinds: ["history"], text, includeFree: false });
  const names = new Set<string>();
  let progress = START;
  while (!progress.isOver && names.size < MOST_NAMES) {
    const page = await scan.page(progress, 1_000);
    progress = page.progress;
    for (const rest of page.rests) {
      const [, escaped] = /^history:\{(.+)\}$/s.exec(rest) ?? [];
      if (escaped !== undefined) names.add(unescaped(escaped));
    }
  }
  const countUnreachable = (): number => scan.withLost(progress).unreachable;
  return { names: [...names], hasAll: progress.isOver, countUnreachable };
}

interface Wish {
  readonly sinceMs: number;
  readonly limit: number;
  readonly isWanted: (entry: HistoryEntry) => boolean;
  readonly isOpenWanted: boolean;
}

const OPEN_OUTCOMES: readonly OpenOutcome[] = ["held", "ending", "expired"];

async function historyOf(
  place: Source,
  name: string,
  identities: Identities,
  { sinceMs, limit, isWanted, isOpenWanted }: Wish,
): Promise<Omit<FoundHistory, "unreachable">> {
  const { events, nowMs, isComplete } = await eventsOf(place, name, sinceMs, (read) => {
    return entriesOf(read, () => "held").filter(isWanted).length > limit;
  });
  const open = isOpenWanted ? openIn(events) : [];
  const isHeld = await holdsOf(place, name, identities, open);
  const over = await expiredAmong(
    open.filter((hold) => !isHeld(hold)),
    identities,
    nowMs,
  );
  const judge = (hold: Hold): OpenOutcome => (isHeld(hold) ? "held" : over.has(hold.owner) ? "expired" : "ending");
  const entries = entriesOf(events, judge).filter(isWanted);
  return { entries: entries.slice(0, limit), isComplete: isComplete && entries.length <= limit };
}

/**
 * Returns the owners of the holds whose leases are certain to have ended without a release. A live holder records how
 * its hold ended, but with a short delay. So this is certain only if the granted lease is over and the holder is gone.
 */
async function expiredAmong(
  holds: readonly Hold[],
  identities: Identities,
  nowMs: number,
): Promise<ReadonlySet<string>> {
  const over = holds.filter(({ owner, grantedAtMs }) => grantedAtMs + leaseMsIn(owner) <= nowMs);
  const silent = await eachOf(over, AT_ONCE, ({ owner }) => identities.isSilent(owner));
  return new Set(over.flatMap(({ owner }, i) => (silent[i] ? [owner] : [])));
}

/** Reads events of one name, newest first, until `isEnough` returns true. @throws StoreError */
async function eventsOf(
  place: Source,
  name: string,
  sinceMs: number,
  isEnough: (events: readonly ReadEvent[]) => boolean,
): Promise<{ readonly events: readonly ReadEvent[]; readonly nowMs: number; readonly isComplete: boolean }> {
  const history = historyKey(place, name);
  let now = 0;
  let isComplete = true;
  const from = async (store: Store): Promise<ReadEvent[]> => {
    const events: ReadEvent[] = [];
    let before = "+";
    for (;;) {
      const args = { sinceMs, before, most: PAGE };
      const reading = call({ store, name }, adminReadHistory, { history }, args, place.timeoutMs);
      const reply = await reading.catch(nothingIfMistyped);
      if (reply === undefined) return events;
      const { words, nowMs } = reply;
      now = Math.max(now, nowMs);
      for (let at = 0; at + 2 < words.length; at += 3) {
        const event = eventOf(name, Number(words[at + 1]), words[at + 2] ?? "");
        // An event is added some time after it happens, so it may be older than the range that was read.
        if (event !== undefined && event.atMs >= nowMs - sinceMs) events.push(event);
      }
      if (words.length < 3 * PAGE) return events;
      if (events.length >= MOST_READ || isEnough(events)) {
        isComplete = false;
        return events;
      }
      before = `(${words[words.length - 3] ?? ""}`;
    }
  };
  if (place.stores.length === 1) {
    const events = await from(place.session.store);
    return { events, nowMs: now, isComplete };
  }
  // Each of several servers has only the events that were recorded while it was reachable, so read all of them.
  const all = await onServers(place, async (store) => {
    try {
      return await from(store);
    } catch (error) {
      place.missed.add(store);
      throw error;
    }
  });
  const read = all.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  const [first] = all;
  if (all.every(({ status }) => status === "rejected") && first?.status === "rejected") throw first.reason;
  return { events: read, nowMs: now, isComplete };
}

/** Parses an event. Returns undefined for an entry that Holdfast did not write. */
function eventOf(name: string, atMs: number, text: string): ReadEvent | undefined {
  try {
    const read: unknown = JSON.parse(text);
    if (typeof read !== "object" || read === null || !("what" in read) || !("kind" in read)) return undefined;
    return { ...(read as ReadEvent), name, atMs };
  } catch {
    return undefined;
  }
}

type Hold = Parameters<Parameters<typeof entriesOf>[1]>[0];

/**
 * Inspects each kind of lock with this name once.
 *
 * @param open  the holds without a recorded end
 * @returns a function that returns whether such a hold continues
 * @throws StoreError
 */
async function holdsOf(
  place: Place,
  name: string,
  identities: Identities,
  open: readonly Hold[],
): Promise<(hold: Hold) => boolean> {
  const inspected = new Map<string, readonly EntryHolder[]>();
  await Promise.all(
    [...new Map(open.map((hold) => [placeOfHold(hold), hold])).entries()].map(async ([at, { kind, key }]) => {
      const known = LOCK_KINDS.find((one) => one === (kind === "reentrant-mutex" ? "mutex" : kind));
      if (known === undefined || (known === "redlock") !== (place.servers !== undefined)) return;
      const { entry } = await inspectLock(place, { kind: known, name: key ?? name, key }, identities);
      if (entry.unreadable === undefined) inspected.set(at, entry.holders);
    }),
  );
  return (hold) => {
    const holders = inspected.get(placeOfHold(hold));
    // Assume that a hold continues if its lock cannot be inspected or has more holders than the server returns.
    if (holders === undefined || holders.length >= MOST_HOLDERS) return true;
    return holders.some(({ owner, token }) => owner === hold.owner && (token === undefined || isAmong(hold, token)));
  };
}

/**
 * Whether a hold is part of the claim that the server shows for the same owner. `first` is the token on the server. If
 * several callers share a claim, their tokens are consecutive, and the server stores only the first.
 *
 * For a redlock or a read-write lock, the owner alone identifies the hold, because each attempt to acquire one has its
 * own owner. The tokens can differ: a server of a redlock may have a higher token than the majority agreed on, and the
 * lease of a read-write lock gets a new token when it is upgraded.
 */
function isAmong({ kind, owner, token }: Hold, first: number): boolean {
  if (kind === "redlock" || kind === CHANGING) return true;
  const isShared = kind === "mutex" || kind === "reentrant-mutex" || kind === "election";
  const many = isShared ? (parseOwner(owner)?.amount ?? 1) : 1;
  return first <= token && token < first + many;
}

function placeOfHold({ kind, key }: Hold): string {
  return `${kind} ${key ?? ""}`;
}
