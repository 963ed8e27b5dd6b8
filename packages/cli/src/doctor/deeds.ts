/** What persons did to locks, as histories tell of it: which pause is meant, which was the last, and whether it was ended. */
import type { PauseEnd, PauseIdentity, RecordedPause } from "./facts.js";

/** Something that somebody did. */
export type Deed = (RecordedPause & { readonly what: "paused" }) | (PauseEnd & { readonly what: "resumed" });

const KINDS = ["mutex", "election", "semaphore", "read-write-lock"];

/** Undefined for what is not of our writing. */
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

/** Which pause that owner is: its end stands in it too, and may change. Undefined if it is none. */
export function pauseOf(owner: string): PauseIdentity | undefined {
  const [, since, request] = /^pause\/(\d+)\/\d+\/\d+\/([^/]+)\//.exec(owner) ?? [];
  return since === undefined ? undefined : { id: `${since}/${request}`, sinceAtMs: Number(since) };
}

/** Whether `end` ended this pause or a later one. */
export function isEndOf(end: Pick<PauseEnd, "pause" | "atMs">, recorded: RecordedPause): boolean {
  if (end.pause === undefined || recorded.pause === undefined) {
    // Deeds are written a while after they happened, so that their order is not that of the stream. In one moment, it has ended.
    return end.atMs >= startOf(recorded);
  }
  return end.pause.id === recorded.pause.id || end.pause.sinceAtMs > recorded.pause.sinceAtMs;
}

/** When it began: by the server, if it is known which one it is. */
export function startOf({ pause, atMs }: RecordedPause): number {
  return pause?.sinceAtMs ?? atMs;
}

/** Whether this was paused after the other; of one pause, whether this is the latest record of it. */
export function isLater(one: RecordedPause, other: RecordedPause): boolean {
  const laterMs = startOf(one) - startOf(other);
  return laterMs > 0 || (laterMs === 0 && one.atMs > other.atMs);
}

/** Returns the last pause of each lock without a recorded resume. @param deeds  newest first */
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

/** A key is the whole of a lock: the console calls a mutex by it, and programs by a name of their own. */
export function lockOf({ kind, name, key }: Pick<RecordedPause, "kind" | "name" | "key">): string {
  return key === undefined ? `${kind} name ${name}` : `${kind} key ${key}`;
}
