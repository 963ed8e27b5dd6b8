/** What has happened to one name, or to all of them, newest first. */

import { adminReadHistory } from "../generated/admin-scripts.js";
import type { Holdfast, Store } from "../index.js";
import { call, checkKnown, checkName, checkWhole, parseOwner, show } from "../internal.js";
import { type EntryHolder, LOCK_KINDS } from "./entry.js";
import { readGlob } from "./glob.js";
import { historyKey } from "./history.js";
import {
  CHANGING,
  entriesOf,
  HISTORY_OUTCOMES,
  type HistoryEntry,
  type HistoryOutcome,
  openIn,
  type ReadEvent,
} from "./history-entries.js";
import { unescaped } from "./key-names.js";
import { look } from "./look.js";
import { nothingIfMistyped } from "./mistyped.js";
import { eachOf, identitiesOf, type Place, placeOf } from "./place.js";
import { KeyScan, START } from "./scan.js";

/** What to read. */
export interface ReadHistoryOptions {
  /** One name. @default all that have a history */
  readonly name?: string | undefined;
  /** Names, as SCAN has patterns. In place of `name`. */
  readonly pattern?: string | undefined;
  /** How far back, in ms; 1 to a year. @default a day */
  readonly sinceMs?: number | undefined;
  /** Only what went so. @default all */
  readonly outcome?: HistoryOutcome | readonly HistoryOutcome[] | undefined;
  /** How many entries at most; 1 to 10,000. @default 50 */
  readonly limit?: number | undefined;
}

const OPTIONS = ["name", "pattern", "sinceMs", "outcome", "limit"] as const;
const A_DAY_MS = 86_400_000;
/** How many events one request reads. */
const PAGE = 500;
/** How many events of one name are read for the sake of a few that are wanted. */
const MOST_READ = 10_000;
/** How many names are read: those that SCAN finds first. */
const MOST_NAMES = 10_000;
const AT_ONCE = 20;
/** How many holders are named of a lock that has several. */
const MOST_HOLDERS = 1_000;

/**
 * What has happened, newest first, as far as somebody has told it: `recordHistory` of each process, and whoever acts in
 * another's place. One entry for each hold. Without a name all histories are read, of up to 10,000 names: that costs SCAN, and a
 * request for each. Changes nothing.
 *
 * @throws StoreError   a server did not answer
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  a wrong option; nothing was sent
 */
export async function readHistory(
  holdfast: Holdfast,
  options: ReadHistoryOptions = {},
): Promise<readonly HistoryEntry[]> {
  const { name, pattern, sinceMs = A_DAY_MS, outcome = HISTORY_OUTCOMES, limit = 50 } = checkKnown(options, OPTIONS);
  if (name !== undefined) checkName(name);
  const glob = pattern === undefined ? undefined : readGlob(pattern);
  checkWhole("sinceMs", sinceMs, 1, 31_536_000_000);
  checkWhole("limit", limit, 1, 10_000);
  const outcomes: readonly unknown[] = Array.isArray(outcome) ? outcome : [outcome];
  const wrong = outcomes.find((one) => !HISTORY_OUTCOMES.includes(one as HistoryOutcome));
  if (wrong !== undefined || outcomes.length === 0) {
    throw new TypeError(`outcome must be one of ${HISTORY_OUTCOMES.join(", ")}; got ${show(wrong)}`);
  }
  const place = placeOf(holdfast);
  const names = name === undefined ? await namesOf(place, glob?.literal ?? "") : [name];
  const chosen = glob === undefined ? names : names.filter((one) => glob.matches(one));
  const isWanted = (entry: HistoryEntry): boolean => outcomes.includes(entry.outcome);
  const each = await eachOf(chosen, AT_ONCE, (one) => historyOf(place, one, sinceMs, limit, isWanted));
  return each
    .flat()
    .toSorted((one, other) => other.atMs - one.atMs)
    .slice(0, limit);
}

/** Names with a history. @throws StoreError */
async function namesOf(place: Place, text: string): Promise<string[]> {
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
  return [...names];
}

async function historyOf(
  place: Place,
  name: string,
  sinceMs: number,
  limit: number,
  isWanted: (entry: HistoryEntry) => boolean,
): Promise<readonly HistoryEntry[]> {
  const events = await eventsOf(place, name, sinceMs, (read) => {
    return entriesOf(read, () => true).filter(isWanted).length > limit;
  });
  const isHeld = await holdsOf(place, name, openIn(events));
  return entriesOf(events, isHeld).filter(isWanted).slice(0, limit);
}

/** Events of one name, newest first, until there are enough of them. @throws StoreError */
async function eventsOf(
  place: Place,
  name: string,
  sinceMs: number,
  isEnough: (events: readonly ReadEvent[]) => boolean,
): Promise<readonly ReadEvent[]> {
  const history = historyKey(place, name);
  const from = async (store: Store): Promise<ReadEvent[]> => {
    const events: ReadEvent[] = [];
    let before = "+";
    for (;;) {
      const args = { sinceMs, before, most: PAGE };
      const reading = call({ store, name }, adminReadHistory, { history }, args, place.timeoutMs);
      const reply = await reading.catch(nothingIfMistyped);
      if (reply === undefined) return events;
      const { words, nowMs } = reply;
      for (let at = 0; at + 2 < words.length; at += 3) {
        const event = eventOf(name, Number(words[at + 1]), words[at + 2] ?? "");
        // It was added after it happened, and so may be older than the part of the stream that was asked for.
        if (event !== undefined && event.atMs >= nowMs - sinceMs) events.push(event);
      }
      if (words.length < 3 * PAGE || events.length >= MOST_READ || isEnough(events)) return events;
      before = `(${words[words.length - 3] ?? ""}`;
    }
  };
  if (place.stores.length === 1) return from(place.session.store);
  // Each of several servers has what was told while it could be reached.
  const all = await Promise.allSettled(place.stores.map(from));
  const read = all.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  const [first] = all;
  if (all.every(({ status }) => status === "rejected") && first?.status === "rejected") throw first.reason;
  return read;
}

/** Undefined for what is not of our writing. */
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

/** Whether holds of which no end was told go on: one look at each kind of the name. @throws StoreError */
async function holdsOf(place: Place, name: string, open: readonly Hold[]): Promise<(hold: Hold) => boolean> {
  const identities = identitiesOf(place);
  const looked = new Map<string, readonly EntryHolder[]>();
  await Promise.all(
    [...new Map(open.map((hold) => [placeOfHold(hold), hold])).entries()].map(async ([at, { kind, key }]) => {
      const known = LOCK_KINDS.find((one) => one === (kind === "reentrant-mutex" ? "mutex" : kind));
      if (known === undefined || (known === "redlock") !== (place.servers !== undefined)) return;
      const { entry } = await look(place, { kind: known, name: key ?? name, key }, identities);
      if (entry.unreadable === undefined) looked.set(at, entry.holders);
    }),
  );
  return (hold) => {
    const holders = looked.get(placeOfHold(hold));
    // What cannot be looked at, or not as a whole, is not said to be over.
    if (holders === undefined || holders.length >= MOST_HOLDERS) return true;
    return holders.some(({ owner, token }) => owner === hold.owner && (token === undefined || isAmong(hold, token)));
  };
}

/**
 * A claim that several callers share has some tokens in a row, of which the server names the first. Servers of a quorum may
 * each stand higher than the token on which a majority agreed, and a lease that changes sides gets another one; there each attempt has an
 * owner of its own.
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
