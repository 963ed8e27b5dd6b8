/** From events to entries: a hold is one entry, however many events speak of it, and whoever wrote them. */
import type { HistoryEvent, HistoryWord } from "./history.js";

/**
 * How it went.
 *
 * - `held`: it goes on
 * - `released`, `lost`, `forced`, `skipped`, `paused`, `resumed`: as of `HistoryWord`
 * - `expired`: its lease ended, and its holder gave it back too late or has not been heard of since
 */
export type HistoryOutcome = "held" | "released" | "lost" | "expired" | "forced" | "skipped" | "paused" | "resumed";

/** All of them. */
export const HISTORY_OUTCOMES: readonly HistoryOutcome[] = [
  "held",
  "released",
  "lost",
  "expired",
  "forced",
  "skipped",
  "paused",
  "resumed",
];

/** One hold, or one thing that has happened without one. */
export interface HistoryEntry {
  readonly name: string;
  readonly kind: string;
  readonly outcome: HistoryOutcome;
  /** When it ended, or happened, by the server's clock, in ms since 1970; of a hold whose end nobody told, when it began. */
  readonly atMs: number;
  /** When the hold began; undefined where there is none, or nobody told. */
  readonly grantedAtMs: number | undefined;
  readonly owner: string | undefined;
  readonly token: number | undefined;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  readonly clientName: string | undefined;
  readonly label: string | undefined;
  readonly waitedMs: number | undefined;
  /** How long it was held; undefined if it still is, or nobody told. */
  readonly heldMs: number | undefined;
  readonly reason: string | undefined;
  /** Of a scheduled run: which time it was for. */
  readonly tick: string | undefined;
  /** Of a run that failed: the name of its error. */
  readonly errorName: string | undefined;
  /** Who did it, if that is not the holder. */
  readonly by: string | undefined;
  /** Of a pause: until when. */
  readonly untilAtMs: number | undefined;
}

/** An event as it was read. */
export interface ReadEvent extends Omit<HistoryEvent, "agoMs"> {
  /** What tells it from all others, if it speaks of no hold. */
  readonly id?: string | undefined;
  readonly atMs: number;
}

/** What counts where several speak of one end: who released it by force knows more than the holder who found out. */
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

/** The kind whose leases may change their token; each of them has an owner of its own. */
export const CHANGING = "read-write-lock";

/** A hold of which no end was told. */
export interface OpenHold {
  readonly kind: string;
  readonly key: string | undefined;
  readonly owner: string;
  readonly token: number;
}

/**
 * Puts events of one name together, newest first.
 *
 * @param isHeld  whether that hold, of which no end was told, still goes on
 */
export function entriesOf(events: readonly ReadEvent[], isHeld: (hold: OpenHold) => boolean): HistoryEntry[] {
  return groupsOf(events)
    .map((group) => entryOf(group, isHeld))
    .toSorted((one, other) => other.atMs - one.atMs || (other.token ?? 0) - (one.token ?? 0));
}

/** The holds among events of which no end was told. */
export function openIn(events: readonly ReadEvent[]): readonly OpenHold[] {
  return groupsOf(events).flatMap((group) => openHoldOf(group) ?? []);
}

/**
 * A token tells a hold from all others of its name; of a read-write lock the owner does, since a lease that changes sides gets another
 * token. Who ended one by force may have named its token alone, or its owner alone. Of what a person did to a pause, both the program
 * that did it and the page that asked for it may tell, each with the owner of the pause.
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

/** What is done to a lock as a whole, and is no hold. */
function isDeed(what: HistoryWord): boolean {
  return what === "paused" || what === "resumed";
}

function openHoldOf(group: readonly ReadEvent[]): OpenHold | undefined {
  const [{ kind, owner, token, key }] = group as [ReadEvent]; // a group has one at least
  if (owner === undefined || token === undefined || group.some(({ what }) => what !== "granted")) return undefined;
  return { kind, key, owner, token };
}

function entryOf(group: readonly ReadEvent[], isHeld: (hold: OpenHold) => boolean): HistoryEntry {
  const byWeight = group.toSorted((one, other) => WEIGHTS[other.what] - WEIGHTS[one.what]);
  const [main = group[0] as ReadEvent] = byWeight; // a group has one at least
  const granted = group.find(({ what }) => what === "granted");
  const told = <Field extends keyof ReadEvent>(field: Field): ReadEvent[Field] | undefined =>
    byWeight.find((event) => event[field] !== undefined)?.[field];
  const [kind, token] = [granted?.kind ?? main.kind, told("token")];
  // A pause is nobody's hold: who did it stands in `by`.
  const owner = isDeed(main.what) ? undefined : told("owner");
  const heldMs = told("heldMs");
  const open = openHoldOf(group);
  const outcome = main.what !== "granted" ? main.what : open !== undefined && isHeld(open) ? "held" : "expired";
  // Of several who tell of one end the first is the nearest to it.
  const atMs = Math.min(...group.filter(({ what }) => what === main.what).map((event) => event.atMs));
  // Ages are whole milliseconds, so a hold that was over at once may be told to have ended before it began.
  const began = granted === undefined ? undefined : Math.min(granted.atMs, atMs);
  return {
    name: main.name,
    kind,
    outcome,
    atMs,
    grantedAtMs: began ?? (heldMs === undefined ? undefined : Math.round(main.atMs - heldMs)),
    owner,
    token,
    host: told("host"),
    pid: told("pid"),
    clientName: told("clientName"),
    label: told("label"),
    waitedMs: told("waitedMs"),
    heldMs,
    reason: told("reason"),
    tick: told("tick"),
    errorName: told("errorName"),
    by: told("by"),
    untilAtMs: told("untilAtMs"),
  };
}
