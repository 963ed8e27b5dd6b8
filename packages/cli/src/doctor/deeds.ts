/**
 * Reads pauses and resumes from the history of a lock: which pause an entry is about, which pause was the last, and
 * whether it was ended.
 */
import type { PauseEnd, PauseIdentity, RecordedPause } from "./facts.js";

/** A recorded action of an operator: a pause or a resume. */
export type Deed = (RecordedPause & { readonly what: "paused" }) | (PauseEnd & { readonly what: "resumed" });

const KINDS = ["mutex", "election", "semaphore", "read-write-lock"];

/** Returns undefined if the text was not written by Holdfast or records something else. */
export function deedOf(name: string, atMs: number, text: string): Deed | undefined {
  let read: Readonly<Record<string, unknown>>;
  try {
    read = Object(JSON.parse(text));
  } catch {
    return undefined;
  }
  const { what, kind: recordedKind, by, reason, label = reason, untilAtMs, key, id, owner = id } = read;
  const kind = recordedKind === "reentrant-mutex" ? "mutex" : String(recordedKind);
  if ((what !== "paused" && what !== "resumed") || !KINDS.includes(kind) || !Number.isFinite(atMs)) return undefined;
  const pause = pauseOf(String(owner ?? "").replace(/^(paused|resumed) /, ""));
  return {
    what,
    kind,
    name,
    atMs,
    ...(pause === undefined ? {} : { pause }),
    ...(typeof key === "string" ? { key } : {}),
    ...(typeof by === "string" ? { by } : {}),
    ...(typeof label === "string" ? { label } : {}),
    ...(typeof untilAtMs === "number" ? { untilAtMs } : {}),
  };
}

/**
 * The pause that this owner id identifies. The owner id also contains the end of the pause, which may change, so only
 * the stable parts are returned. Undefined if the owner is not a pause.
 */
export function pauseOf(owner: string): PauseIdentity | undefined {
  const [, since, request] = /^pause\/(\d+)\/\d+\/\d+\/([^/]+)\//.exec(owner) ?? [];
  return since === undefined ? undefined : { id: `${since}/${request}`, sinceAtMs: Number(since) };
}

/** Whether `end` ended this pause or a later one. */
export function isEndOf(end: Pick<PauseEnd, "pause" | "atMs">, recorded: RecordedPause): boolean {
  if (end.pause === undefined || recorded.pause === undefined) {
    // Actions are recorded a while after they happen, so their order in the stream does not matter. If the times are
    // equal, the pause counts as ended.
    return end.atMs >= startOf(recorded);
  }
  return end.pause.id === recorded.pause.id || end.pause.sinceAtMs > recorded.pause.sinceAtMs;
}

/** The server time at which the pause began, if its identity is known; otherwise the recorded time. */
export function startOf({ pause, atMs }: RecordedPause): number {
  return pause?.sinceAtMs ?? atMs;
}

/** Whether `one` was paused after `other`. For records of the same pause, whether `one` is the later record. */
export function isLater(one: RecordedPause, other: RecordedPause): boolean {
  const laterMs = startOf(one) - startOf(other);
  return laterMs > 0 || (laterMs === 0 && one.atMs > other.atMs);
}

/** Returns the last pause of each lock, unless a recorded resume ended it. @param deeds  newest first */
export function openIn(deeds: readonly Deed[]): RecordedPause[] {
  const last = new Map<string, RecordedPause>();
  for (const deed of deeds) {
    if (deed.what === "resumed") continue;
    const { what: _, ...recorded } = deed;
    const before = last.get(lockOf(recorded));
    if (before === undefined || isLater(recorded, before)) last.set(lockOf(recorded), recorded);
  }
  return [...last.values()].filter((recorded) => {
    return !deeds.some(
      (deed) => deed.what === "resumed" && lockOf(deed) === lockOf(recorded) && isEndOf(deed, recorded),
    );
  });
}

/**
 * Identifies a lock. If it has a key, its name is ignored, because the console and programs may use different names for
 * the same key.
 */
export function lockOf({ kind, name, key }: Pick<RecordedPause, "kind" | "name" | "key">): string {
  return key === undefined ? `${kind} name ${name}` : `${kind} key ${key}`;
}
