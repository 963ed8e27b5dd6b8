/**
 * Reads the last pause in the history of each lock and whether that pause was lost. Scans page by page with SCAN, never
 * with KEYS, until the time runs out.
 */
import { asPattern, mappedKeys } from "holdfast/diagnosis";
import { type Deed, deedOf, isEndOf, openIn, pauseOf } from "../deeds.js";
import type { PauseFacts, RecordedPause } from "../facts.js";
import { isRefused } from "../words.js";
import { type Link, within, wordsOf } from "./link.js";

/** Maximum number of histories read. */
export const MOST_HISTORIES = 5_000;
const PAGE = 1_000;
/**
 * Maximum number of histories read at the same time. Each script call blocks the server for a millisecond or two, and
 * other clients wait for all calls that were sent together.
 */
const AT_ONCE = 2;
/** The number of latest events that are read for each name. This is the default length of a history. */
export const MOST_EVENTS = 1_000;
/** Time reserved for reads that finish late, in ms. */
const SPARE_MS = 200;

/**
 * Returns only pauses and resumes, so that the entries of up to a thousand holds stay on the server.
 *
 * KEYS[1] history    ARGV[1] maximum number of events to read
 *
 * Returns the number of events read, and then the time and JSON of each pause or resume, newest first.
 */
const DEEDS = `-- the doctor looks for pauses in a history
local events = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[1])
local deeds = {#events}
for _, event in ipairs(events) do
  local text = event[2][4]
  if text and (string.find(text, '"what":"paused"', 1, true) or string.find(text, '"what":"resumed"', 1, true)) then
    deeds[#deeds + 1] = event[2][2]
    deeds[#deeds + 1] = text
  end
end
return deeds`;

/** The results so far. */
interface Seen {
  histories: number;
  readonly recorded: RecordedPause[];
  /** Pauses and resumes of mutexes with a key, from all histories. */
  readonly keyed: Deed[];
  isCut: boolean;
  stopped?: "many" | "late";
}

/** @throws Error  SCAN or the script that reads a history is refused, or nothing could be read */
export async function readPauses(link: Link): Promise<PauseFacts | undefined> {
  const { topology, endAtMs, forMs, isPrimary } = link;
  if (!isPrimary || topology === "redlock") return undefined;
  const startMs = await timeMs(link);
  const beganAtMs = performance.now();
  const seen: Seen = { histories: 0, recorded: [], keyed: [], isCut: false };
  // Read the time last, so that a pause that expired during the scan counts as ended.
  const reading = walk(link, seen).then(() => timeMs(link));
  const nowMs = await within(reading, { endAtMs: endAtMs - SPARE_MS / 2, forMs }).catch((error: unknown) => {
    if (seen.histories === 0 || isRefused(wordsOf(error))) throw error;
    seen.stopped = "late";
    return startMs + Math.round(performance.now() - beganAtMs);
  });
  const { histories, recorded, keyed, isCut, stopped } = seen;
  const ends = keyed.flatMap((deed) => (deed.what === "resumed" ? [deed] : []));
  return {
    ...{ nowMs, histories, recorded: [...recorded] },
    ...(ends.length === 0 ? {} : { ends }),
    ...(isCut ? { isCut } : {}),
    ...(stopped === undefined ? {} : { stopped }),
  };
}

async function walk(link: Link, seen: Seen): Promise<void> {
  const { redis, prefix, endAtMs } = link;
  const start = `${prefix}:history:`;
  const sha = String(await redis.call("SCRIPT", "LOAD", DEEDS));
  const known = new Set<string>();
  let cursor = "0";
  do {
    const words = [cursor, "MATCH", `${asPattern(start)}{*`, "COUNT", PAGE] as const;
    const [next, names] = (await redis.call("SCAN", ...words)) as [string, string[]];
    cursor = next;
    // SCAN may return a key twice.
    const fresh = [...new Set(names)].filter((name) => !known.has(name));
    while (fresh.length > 0 && seen.stopped === undefined) {
      const some = fresh.splice(0, Math.min(AT_ONCE, MOST_HISTORIES - known.size));
      if (performance.now() > endAtMs - SPARE_MS) seen.stopped = "late";
      else if (some.length === 0) seen.stopped = "many";
      else {
        for (const name of some) known.add(name);
        await Promise.all(some.map((name) => readOne(link, sha, name, name.slice(start.length), seen)));
      }
    }
    if (cursor !== "0" && performance.now() > endAtMs - SPARE_MS) seen.stopped ??= "late";
  } while (cursor !== "0" && seen.stopped === undefined);
  // The resume of a pause may be recorded in a history that was not read, so judge these pauses only after a complete
  // scan.
  if (seen.stopped === undefined) seen.recorded.push(...(await judged(link, undefined, openIn(seen.keyed))));
}

async function timeMs({ redis }: Link): Promise<number> {
  const [seconds = 0, micros = 0] = ((await redis.call("TIME")) as unknown[]).map(Number);
  return seconds * 1_000 + Math.floor(micros / 1_000);
}

/** Adds the pauses in the history of one name. */
async function readOne(link: Link, sha: string, history: string, place: string, seen: Seen): Promise<void> {
  const reading = link.redis.call("EVALSHA", sha, "1", history, MOST_EVENTS) as Promise<[number, ...string[]]>;
  const [events, ...words] = (await unless(ELSEWHERE, reading)) ?? [0];
  // As in the keys of locks: a percent sign precedes a name that could be misread.
  const name = place.slice(1, -1).replace(/^%/, "");
  const deeds: Deed[] = [];
  for (let at = 0; at + 1 < words.length; at += 2) {
    const deed = deedOf(name, Number(words[at]), words[at + 1] ?? "");
    if (deed !== undefined) deeds.push(deed);
  }
  const named = deeds.filter(({ key }) => key === undefined);
  const recorded = await judged(link, place, openIn(named));
  seen.histories += 1;
  seen.isCut ||= events >= MOST_EVENTS;
  seen.recorded.push(...recorded);
  seen.keyed.push(...deeds.filter(({ key }) => key !== undefined));
}

/** Sets `isInForce` on each pause. */
async function judged(link: Link, place: string | undefined, open: readonly RecordedPause[]): Promise<RecordedPause[]> {
  const judgedOnes: RecordedPause[] = [];
  for (const pause of open) {
    const isInForce = await unless(ELSEWHERE, isPauseInForce(link, place, pause));
    judgedOnes.push({ ...pause, ...(isInForce === undefined ? {} : { isInForce }) });
  }
  return judgedOnes;
}

/**
 * Errors that mean that the key has another type, which `leftovers` reports, or is on another node. Older servers put
 * the name of the script before the error.
 */
const ELSEWHERE = /^(ASK|MOVED|TRYAGAIN)\b|\bWRONGTYPE\b/;

/** Returns the reply; undefined if the server's error matches `words`. @throws Error  any other error, or no reply */
async function unless<Answer>(words: RegExp, asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (words.test(wordsOf(error))) return undefined;
    throw error;
  }
}

/** Whether the pause is in force on this node or was ended by a resume; false if it was lost. */
async function isPauseInForce(link: Link, place: string | undefined, recorded: RecordedPause): Promise<boolean> {
  const { redis, prefix } = link;
  const { kind, key } = recorded;
  const base = key === undefined ? `${prefix}:${kind}:${place}` : mappedKeys(prefix, kind, key).base;
  // The key expires with the pause.
  if ((await redis.call("GET", `${base}:pause`)) !== null) return true;
  // The history may record a resume late or never, so also read the lock's own record of it, which lasts ten minutes.
  const [, , atMs = "0", owner = ""] = String((await redis.call("GET", `${base}:resumed`)) ?? "").split(" ");
  const pause = pauseOf(owner);
  return isEndOf({ atMs: Number(atMs), ...(pause === undefined ? {} : { pause }) }, recorded);
}
