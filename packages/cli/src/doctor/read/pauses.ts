/** The last pause that the history of each lock tells of, and whether it stands: in pages and never KEYS, for as long as there is time. */
import { asPattern, mappedKeys } from "holdfast/diagnosis";
import type { PauseFacts, ToldPause } from "../facts.js";
import { type Link, wordsOf } from "./link.js";

/** More histories are not read. */
export const MOST_HISTORIES = 5_000;
const PAGE = 1_000;
/** Each answer keeps the server busy for about a millisecond. */
const AT_ONCE = 25;
/** Of so many events of a name, the last ones: as many as a history has, unless somebody keeps more. */
const MOST_EVENTS = 1_000;
/** Left for others that are late. */
const SPARE_MS = 200;
/** A pause holds permits alone; so where there are more holders it is not among them. */
const MOST_HOLDERS = 10;

/**
 * Only what persons did leaves the server, and not the thousand holds beside it.
 *
 * KEYS[1] history    ARGV[1] how many events to look at    Gives time and JSON of each, newest first
 */
const DEEDS = `-- the doctor looks for pauses in a history
local deeds = {}
for _, event in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[1])) do
  local text = event[2][4]
  if text and (string.find(text, '"what":"paused"', 1, true) or string.find(text, '"what":"resumed"', 1, true)) then
    deeds[#deeds + 1] = event[2][2]
    deeds[#deeds + 1] = text
  end
end
return deeds`;

/** @throws Error  SCAN, or what reads a history, is refused */
export async function readPauses(link: Link): Promise<PauseFacts | undefined> {
  const { redis, prefix, topology, endAtMs, isPrimary } = link;
  if (!isPrimary || topology === "redlock") return undefined;
  const start = `${prefix}:history:`;
  const startMs = await timeMs(link);
  const sha = String(await redis.call("SCRIPT", "LOAD", DEEDS));
  const known = new Set<string>();
  const told: ToldPause[] = [];
  let stopped: PauseFacts["stopped"];
  let cursor = "0";
  do {
    const words = [cursor, "MATCH", `${asPattern(start)}{*`, "COUNT", PAGE] as const;
    const [next, names] = (await redis.call("SCAN", ...words)) as [string, string[]];
    cursor = next;
    // SCAN may give one twice.
    const fresh = [...new Set(names)].filter((name) => !known.has(name));
    while (fresh.length > 0 && stopped === undefined) {
      const some = fresh.splice(0, Math.min(AT_ONCE, MOST_HISTORIES - known.size));
      if (performance.now() > endAtMs - SPARE_MS) stopped = "late";
      else if (some.length === 0) stopped = "many";
      else {
        for (const name of some) known.add(name);
        const read = await Promise.all(some.map((name) => readOne(link, sha, name, name.slice(start.length), startMs)));
        told.push(...read.flat());
      }
    }
    if (cursor !== "0" && performance.now() > endAtMs - SPARE_MS) stopped ??= "late";
  } while (cursor !== "0" && stopped === undefined);
  // Asked at the end: what ended by itself while it was looked at has ended.
  const nowMs = await timeMs(link);
  return { nowMs, histories: known.size, told, ...(stopped === undefined ? {} : { stopped }) };
}

async function timeMs({ redis }: Link): Promise<number> {
  const [seconds = 0, micros = 0] = ((await redis.call("TIME")) as unknown[]).map(Number);
  return seconds * 1_000 + Math.floor(micros / 1_000);
}

/** The last pause of each kind of one name, where nobody is told to have resumed since. */
async function readOne(link: Link, sha: string, history: string, place: string, nowMs: number): Promise<ToldPause[]> {
  const reading = link.redis.call("EVALSHA", sha, "1", history, MOST_EVENTS) as Promise<string[]>;
  const words = (await unless(ELSEWHERE, reading)) ?? [];
  const last = new Map<string, Deed>();
  for (let at = 0; at + 1 < words.length; at += 2) {
    const deed = deedOf(Number(words[at]), words[at + 1] ?? "");
    if (deed === undefined) continue;
    const id = `${deed.kind} ${deed.key ?? ""}`;
    const before = last.get(id);
    // They are written a while after they happened, so their order is not that of the stream. In one moment, it has ended.
    const isLater =
      before === undefined || deed.atMs > before.atMs || (deed.atMs === before.atMs && deed.what === "resumed");
    if (isLater) last.set(id, deed);
  }
  // As the keys of locks have it: a percent sign stands before a name that could be misread.
  const name = place.slice(1, -1).replace(/^%/, "");
  const open = [...last.values()].flatMap(({ what, ...pause }) => (what === "paused" ? [{ name, ...pause }] : []));
  return Promise.all(
    open.map(async (pause) => {
      const stands = await unless(
        pause.key === undefined ? ELSEWHERE : MAPPED_ELSEWHERE,
        standing(link, place, pause, nowMs),
      );
      return { ...pause, ...(stands === undefined ? {} : { stands }) };
    }),
  );
}

/** A key of another type, which `leftovers` tells of, or one that is on another node. Older servers say first which script it was. */
const ELSEWHERE = /^(ASK|MOVED|TRYAGAIN)\b|\bWRONGTYPE\b/;
/** The key of a mapped lock need not be below the prefix. */
const MAPPED_ELSEWHERE = /^(ASK|MOVED|TRYAGAIN|NOPERM)\b|\bWRONGTYPE\b/;

/** The answer; undefined if the server refuses in such words. @throws Error  it refuses in others, or there is no answer */
async function unless<Answer>(words: RegExp, asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (words.test(wordsOf(error))) return undefined;
    throw error;
  }
}

interface Deed extends Omit<ToldPause, "name" | "stands"> {
  readonly what: "paused" | "resumed";
}

const KINDS = ["mutex", "election", "semaphore", "read-write-lock"];

/** Undefined for what is not of our writing. */
function deedOf(atMs: number, text: string): Deed | undefined {
  let read: Readonly<Record<string, unknown>>;
  try {
    read = Object(JSON.parse(text));
  } catch {
    return undefined;
  }
  const { what, kind: told, by, reason, label = reason, untilAtMs, key } = read;
  const kind = told === "reentrant-mutex" ? "mutex" : String(told);
  if ((what !== "paused" && what !== "resumed") || !KINDS.includes(kind) || !Number.isFinite(atMs)) return undefined;
  return {
    what,
    kind,
    atMs,
    ...(typeof key === "string" ? { key } : {}),
    ...(typeof by === "string" ? { by } : {}),
    ...(typeof label === "string" ? { label } : {}),
    ...(typeof untilAtMs === "number" ? { untilAtMs } : {}),
  };
}

/**
 * Whether a pause is in force there, or somebody has resumed since this one.
 *
 * A pause goes from the queue to the lock and never back: asked for in that order, it cannot slip by.
 */
async function standing(link: Link, place: string, { kind, key, atMs }: ToldPause, nowMs: number): Promise<boolean> {
  const { redis, prefix } = link;
  const own = `${prefix}:${kind}:${place}`;
  const { lock, base } = key === undefined ? { lock: own, base: own } : mappedKeys(prefix, kind, key);
  const head = (await redis.call("ZRANGE", `${base}:queue`, 0, 0)) as string[];
  const holders =
    kind === "semaphore" || kind === "read-write-lock"
      ? ((await redis.call("ZRANGE", `${base}:holders`, 0, MOST_HOLDERS - 1)) as string[])
      : [String(await redis.call("GET", lock))];
  const isInForce = (owner: string): boolean => Number(/^pause\/\d+\/(\d+)\//.exec(owner)?.[1] ?? 0) > nowMs;
  if ([...head, ...holders].some(isInForce)) return true;
  // Who resumes may tell the history later, or never; for ten minutes the lock itself tells.
  const [, , resumedAtMs = "0"] = String((await redis.call("GET", `${base}:resumed`)) ?? "").split(" ");
  return Number(resumedAtMs) >= atMs;
}
