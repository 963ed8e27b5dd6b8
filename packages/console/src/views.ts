/**
 * Converts the library's entries to the API's format.
 *
 * Redacted values are removed here, so that no later step can leak them. Remaining lease times become instants. An
 * instant is reused while it is approximately right, so that unchanged rows stay equal.
 */
import type { EntryHolder, EntryWaiter, LockEntry } from "holdfast/admin";
import type { HolderView, LeaderView, LockRow, PauseView, PermitsView, Samples, WaiterView } from "./api.js";
import { serversOf } from "./text.js";

/** The fields that `--redact` hides. */
export type Redaction = ReadonlySet<"label" | "value">;

/** The settings for rows. */
export interface ViewContext {
  readonly redact: Redaction;
  /** Server time at which the entries were read, in ms since 1970. */
  readonly nowMs: number;
}

/**
 * A lease end that differs by less than this from the previous one is not updated, because the difference is invisible
 * on a bar.
 */
const SAME_END_MS = 500;
/** Maximum number of holders in a row of the list. */
const IN_A_ROW = 3;

/** The id of a lock. */
export function idOf({ kind, name, key }: Pick<LockEntry, "kind" | "name" | "key">): string {
  return `${kind}${key === undefined ? "" : "-key"}:${name}`;
}

/** Returns the row of a lock in the list. @param before  the row as previously shown */
export function rowOf(
  entry: LockEntry,
  context: ViewContext,
  waiterSamples: Samples,
  before: LockRow | undefined,
): LockRow {
  const holders = holdersOf(entry.holders.slice(0, IN_A_ROW), context, before?.holders);
  const [first] = holders;
  const pause = pauseOf(entry);
  return {
    id: idOf(entry),
    kind: entry.kind,
    name: entry.name,
    key: entry.key ?? null,
    state: entry.state,
    holders,
    holderCount: entry.holders.length,
    goneCount: entry.holders.filter(({ goneSinceAtMs }) => goneSinceAtMs !== undefined).length,
    waiterCount: waitersOf(entry),
    sinceAtMs: pause?.sinceAtMs ?? oldest(entry.holders),
    expiresAtMs: first?.expiresAtMs ?? null,
    token: entry.holders.length === 0 ? null : (entry.token ?? null),
    permits: permitsOf(entry),
    count: entry.count ?? null,
    label: pause?.reason ?? (context.redact.has("label") ? null : (entry.label ?? null)),
    pause,
    needsTopology: entry.needsTopology ?? null,
    onServers: serversOf(entry),
    waiterSamples,
  };
}

/** The number of waiters, including those of the lock's conditions. */
export function waitersOf({ waiterCount, conditions }: LockEntry): number {
  return conditions.reduce((sum, condition) => sum + condition.waiterCount, waiterCount);
}

/** Returns the holders to show. @param before  the holders as previously shown; see `SAME_END_MS` */
export function holdersOf(
  holders: readonly EntryHolder[],
  context: ViewContext,
  before: readonly HolderView[] = [],
): readonly HolderView[] {
  const known = new Map(before.map((holder) => [`${holder.owner} ${holder.token}`, holder.expiresAtMs]));
  return holders.map((holder) => {
    const owner = publicOwner(holder.owner, context.redact);
    const endsAtMs = Number.isFinite(holder.leaseLeftMs) ? Math.round(context.nowMs + holder.leaseLeftMs) : null;
    const knownEndAtMs = known.get(`${owner} ${holder.token ?? null}`);
    const isUnchanged =
      endsAtMs !== null && typeof knownEndAtMs === "number" && Math.abs(knownEndAtMs - endsAtMs) <= SAME_END_MS;
    return {
      ...claimOf(holder, context),
      token: holder.token ?? null,
      sinceAtMs: holder.sinceAtMs ?? null,
      expiresAtMs: isUnchanged ? knownEndAtMs : endsAtMs,
      slots: holder.slots,
    };
  });
}

/** The queue, in order. @param seenAtMs  when each owner was first seen in it */
export function queueOf(
  waiters: readonly EntryWaiter[],
  context: ViewContext,
  seenAtMs: (owner: string) => number | undefined,
): readonly WaiterView[] {
  return waiters.map((waiter, i) => ({
    place: i + 1,
    ...claimOf(waiter, context),
    sinceAtMs: waiter.sinceAtMs ?? seenAtMs(waiter.owner) ?? null,
  }));
}

/** The leader of an election; null if there is none. */
export function leaderOf(entry: LockEntry, context: ViewContext, before?: LeaderView | null): LeaderView | null {
  const [holder] = holdersOf(entry.holders.slice(0, 1), context, before == null ? [] : [before]);
  if (entry.leader === undefined || holder === undefined) return null;
  return { ...holder, value: context.redact.has("value") ? null : entry.leader.value, term: entry.leader.term };
}

/** The permits of a semaphore; null for other kinds. */
export function permitsOf({ permits }: LockEntry): PermitsView | null {
  if (permits === undefined) return null;
  const { used, limit } = permits;
  return { used, limit: limit ?? null, isOver: limit !== undefined && used > limit };
}

/** The pause of a lock; null if it is not paused. */
export function pauseOf({ pause }: LockEntry): PauseView | null {
  if (pause === undefined) return null;
  const { by, label, sinceAtMs, untilAtMs = null } = pause;
  return { by, reason: label, sinceAtMs, untilAtMs, id: `${sinceAtMs}/${untilAtMs ?? ""}/${by}` };
}

/** The owner id that pages see, without its label (the last part) if labels are redacted. */
export function publicOwner(owner: string, redact: Redaction): string {
  return redact.has("label") && isOurs(owner) ? owner.split("/").slice(0, 4).join("/") : owner;
}

/** The client id in an owner id; null for foreign owners. */
export function clientIdOf(owner: string): string | null {
  return isOurs(owner) ? owner.slice(0, owner.indexOf("/")) : null;
}

function isOurs(owner: string): boolean {
  return /^[A-Za-z0-9_-]{16}\/\d+\/\d+\/\d+(\/|$)/.test(owner);
}

function claimOf(
  claim: EntryHolder | EntryWaiter,
  { redact }: ViewContext,
): Pick<HolderView, "owner" | "clientId" | "host" | "pid" | "app" | "label" | "goneSinceAtMs" | "mode" | "permits"> {
  return {
    owner: publicOwner(claim.owner, redact),
    clientId: clientIdOf(claim.owner),
    host: claim.host ?? null,
    pid: claim.pid ?? null,
    app: claim.clientName ?? null,
    label: redact.has("label") ? null : (claim.label ?? null),
    goneSinceAtMs: claim.goneSinceAtMs ?? null,
    mode: claim.mode,
    permits: claim.permits,
  };
}

function oldest(holders: readonly EntryHolder[]): number | null {
  const since = holders.flatMap(({ sinceAtMs }) => (sinceAtMs === undefined ? [] : [sinceAtMs]));
  return since.length === 0 ? null : Math.min(...since);
}
