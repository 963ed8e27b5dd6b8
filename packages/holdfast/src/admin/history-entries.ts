/**
 * Combines history events into entries: one entry per hold, even if several events from several processes describe it.
 */
import type { HistoryEvent, HistoryWord } from "./history.js";

/**
 * The outcome of a hold or another event.
 *
 * - `held`: the hold continues
 * - `ending`: the server no longer has the hold, and its end is not recorded yet. A healthy holder records it within
 *   the `everyMs` of its recorder, by default a second
 * - `released`, `lost`, `forced`, `skipped`, `paused`, `resumed`: as in `HistoryWord`
 * - `expired`: the lease ended; its holder either released the lock too late, or is gone and has recorded nothing
 */
export type HistoryOutcome =
  | "held"
  | "ending"
  | "released"
  | "lost"
  | "expired"
  | "forced"
  | "skipped"
  | "paused"
  | "resumed";

/** All outcomes. */
export const HISTORY_OUTCOMES: readonly HistoryOutcome[] = [
  "held",
  "ending",
  "released",
  "lost",
  "expired",
  "forced",
  "skipped",
  "paused",
  "resumed",
];

/** A hold, or an event that does not belong to a hold. */
export interface HistoryEntry {
  /** The name of the lock. */
  readonly name: string;
  /** The kind of the lock, such as `mutex`. */
  readonly kind: string;
  /** How the hold ended, or what happened. */
  readonly outcome: HistoryOutcome;
  /**
   * Server time at which the hold ended or the event happened, in ms since 1970. For a hold without a recorded end, the
   * time at which it began.
   */
  readonly atMs: number;
  /** Server time at which the hold began, in ms since 1970. Undefined if there is no hold or its start is unknown. */
  readonly grantedAtMs: number | undefined;
  /** The owner id of the hold or of the skipped run. Undefined for a pause and its end. */
  readonly owner: string | undefined;
  /** The fencing token of the hold. */
  readonly token: number | undefined;
  /** The host of the holder, or of the process that skipped the run. */
  readonly host: string | undefined;
  /** The process id on that host. */
  readonly pid: number | undefined;
  /** The `clientName` option of that process. */
  readonly clientName: string | undefined;
  /** The label of the hold or of the pause. */
  readonly label: string | undefined;
  /** How long the holder waited for the lock, in ms. */
  readonly waitedMs: number | undefined;
  /**
   * How long the lock was held, in ms. Undefined if it is still held, or if no event has recorded the duration. For
   * `resumed`, the length of the pause.
   */
  readonly heldMs: number | undefined;
  /** Why the hold ended, or why the event happened. */
  readonly reason: string | undefined;
  /** For a scheduled run, the time that it was scheduled for. */
  readonly tick: string | undefined;
  /** For a failed run, the name of its error. */
  readonly errorName: string | undefined;
  /** The person or program that did it, if not the holder. */
  readonly by: string | undefined;
  /** For a pause, its end, in ms since 1970. */
  readonly untilAtMs: number | undefined;
}

/** An event as read from the server. */
export interface ReadEvent extends Omit<HistoryEvent, "agoMs"> {
  /** Identifies an event that has no token. */
  readonly id?: string | undefined;
  /** Server time at which it happened, in ms since 1970. */
  readonly atMs: number;
}

/**
 * The weight of each event. If several events describe one hold, the one with the largest weight determines the
 * outcome. A force-release outweighs a loss, because the holder may know only that its lease was lost.
 */
const WEIGHTS: Readonly<Record<HistoryWord, number>> = {
  granted: 0,
  released: 1,
  expired: 2,
  lost: 3,
  forced: 4,
  skipped: 5,
  paused: 5,
  resumed: 5,
};

/** The kind whose leases can get a new token. Each lease of this kind has its own owner. */
export const CHANGING = "read-write-lock";

/** The outcome of a hold without a recorded end. */
export type OpenOutcome = "held" | "ending" | "expired";

/** A hold without a recorded end. */
export interface OpenHold {
  readonly kind: string;
  readonly key: string | undefined;
  readonly owner: string;
  readonly token: number;
  /** Server time at which it began, in ms since 1970. */
  readonly grantedAtMs: number;
}

/**
 * Combines the events of one name into entries, newest first.
 *
 * @param judge  returns the outcome of a hold without a recorded end
 */
export function entriesOf(events: readonly ReadEvent[], judge: (hold: OpenHold) => OpenOutcome): HistoryEntry[] {
  return groupsOf(events)
    .map((group) => entryOf(group, judge))
    .toSorted((one, other) => other.atMs - one.atMs || (other.token ?? 0) - (one.token ?? 0));
}

/** Returns the holds without a recorded end. */
export function openIn(events: readonly ReadEvent[]): readonly OpenHold[] {
  return groupsOf(events).flatMap((group) => openHoldOf(group) ?? []);
}

/**
 * Groups events by hold. A token identifies a hold among all holds of its name. For a read-write lock, the owner
 * identifies the hold, because a lease gets a new token when it is upgraded. A force-release may name only the token,
 * or only the owner. A pause or its end may be recorded twice, by the program that performed it and by the web page
 * that requested it. Both records name the owner of the pause.
 */
function groupsOf(events: readonly ReadEvent[]): ReadEvent[][] {
  const groups = new Map<string, ReadEvent[]>();
  const ofToken = new Map<number, ReadEvent[]>();
  const ofOwner = new Map<string, ReadEvent[]>();
  const add = (id: string, event: ReadEvent): void => {
    const group = groups.get(id) ?? [];
    groups.set(id, group);
    group.push(event);
    if (event.token === undefined || event.owner === undefined) return;
    ofToken.set(event.token, group);
    ofOwner.set(event.owner, group);
  };
  const isWhole = ({ token, owner }: ReadEvent): boolean => token !== undefined && owner !== undefined;
  for (const event of events) {
    if (isWhole(event)) add(event.kind === CHANGING ? `owner ${event.owner}` : `token ${event.token}`, event);
  }
  for (const event of events) {
    const { token, owner = "", what } = event;
    if (isWhole(event)) continue;
    const named = token === undefined ? what === "forced" && ofOwner.get(owner) : ofToken.get(token);
    if (named) named.push(event);
    else
      add(
        token === undefined ? `id ${isDeed(what) && owner !== "" ? `${what} ${owner}` : event.id}` : `token ${token}`,
        event,
      );
  }
  return [...groups.values()];
}

/** Whether an event concerns the lock as a whole rather than a hold. */
function isDeed(what: HistoryWord): boolean {
  return what === "paused" || what === "resumed";
}

function openHoldOf(group: readonly ReadEvent[]): OpenHold | undefined {
  const [{ kind, owner, token, key, atMs }] = group as [ReadEvent]; // a group has at least one event
  if (owner === undefined || token === undefined || group.some(({ what }) => what !== "granted")) return undefined;
  return { kind, key, owner, token, grantedAtMs: atMs };
}

function entryOf(group: readonly ReadEvent[], judge: (hold: OpenHold) => OpenOutcome): HistoryEntry {
  const byWeight = group.toSorted((one, other) => WEIGHTS[other.what] - WEIGHTS[one.what]);
  const [main = group[0] as ReadEvent] = byWeight; // a group has at least one event
  const granted = group.find(({ what }) => what === "granted");
  const firstKnown = <Field extends keyof ReadEvent>(field: Field): ReadEvent[Field] | undefined =>
    byWeight.find((event) => event[field] !== undefined)?.[field];
  const [kind, token] = [granted?.kind ?? main.kind, firstKnown("token")];
  // Omit the owner of a pause, because a pause has no holder. `by` names the operator who paused the lock.
  const owner = isDeed(main.what) ? undefined : firstKnown("owner");
  const heldMs = firstKnown("heldMs");
  const open = openHoldOf(group);
  const outcome = main.what !== "granted" ? main.what : open === undefined ? "expired" : judge(open);
  // If several events record the same end, the earliest is the most accurate.
  const atMs = Math.min(...group.filter(({ what }) => what === main.what).map((event) => event.atMs));
  // Ages are rounded to milliseconds, so the recorded end of a very short hold may be before its start.
  const began = granted === undefined ? undefined : Math.min(granted.atMs, atMs);
  return {
    name: main.name,
    kind,
    outcome,
    atMs,
    grantedAtMs: began ?? (heldMs === undefined ? undefined : Math.round(main.atMs - heldMs)),
    owner,
    token,
    host: firstKnown("host"),
    pid: firstKnown("pid"),
    clientName: firstKnown("clientName"),
    label: firstKnown("label"),
    waitedMs: firstKnown("waitedMs"),
    heldMs,
    reason: firstKnown("reason"),
    tick: firstKnown("tick"),
    errorName: firstKnown("errorName"),
    by: firstKnown("by"),
    untilAtMs: firstKnown("untilAtMs"),
  };
}
