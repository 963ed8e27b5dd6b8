/**
 * From what the library tells to what the pages are told.
 *
 * Whatever is hidden is left out here, so that no later step can let it slip. Ends of leases become instants, and an instant that
 * was told before is told again while it is about right: what nobody touched must not look changed.
 */
import type { EntryHolder, EntryWaiter, LockEntry } from "holdfast/admin";
import type { HolderView, LeaderView, LockRow, PauseView, PermitsView, Samples, WaiterView } from "./api.js";

/** What `--redact` hides. */
export type Redaction = ReadonlySet<"label" | "value">;

/** How rows are made. */
export interface ViewContext {
  readonly redact: Redaction;
  /** The server's clock when the entries were read, in ms since 1970. */
  readonly nowMs: number;
}

/** By how much the end of a lease may be told wrong, rather than anew: no eye sees it on a bar. */
const SAME_END_MS = 500;
/** Holders in a row of the list. */
const IN_A_ROW = 3;

/** Identifies a lock. */
export function idOf({ kind, name, key }: Pick<LockEntry, "kind" | "name" | "key">): string {
  return `${kind}${key === undefined ? "" : "-key"}:${name}`;
}

/** One line of the list. @param before  the line that was shown last */
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
    waiterSamples,
  };
}

/** All who wait for it, those who wait for a condition of it included. */
export function waitersOf({ waiterCount, conditions }: LockEntry): number {
  return conditions.reduce((sum, condition) => sum + condition.waiterCount, waiterCount);
}

/** Holds. @param before  those that were shown last */
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

/** Who leads an election; null if nobody does. */
export function leaderOf(entry: LockEntry, context: ViewContext, before?: LeaderView | null): LeaderView | null {
  const [holder] = holdersOf(entry.holders.slice(0, 1), context, before == null ? [] : [before]);
  if (entry.leader === undefined || holder === undefined) return null;
  return { ...holder, value: context.redact.has("value") ? null : entry.leader.value, term: entry.leader.term };
}

/** Of a semaphore; null for all other kinds. */
export function permitsOf({ permits }: LockEntry): PermitsView | null {
  if (permits === undefined) return null;
  const { used, limit } = permits;
  return { used, limit: limit ?? null, isOver: limit !== undefined && used > limit };
}

/** Who keeps it shut; null if nobody does. */
export function pauseOf({ pause }: LockEntry): PauseView | null {
  if (pause === undefined) return null;
  const { by, label, sinceAtMs, untilAtMs = null } = pause;
  return { by, reason: label, sinceAtMs, untilAtMs, id: `${sinceAtMs}/${untilAtMs ?? ""}/${by}` };
}

/** The owner's id as pages see it: its last part is the label. */
export function publicOwner(owner: string, redact: Redaction): string {
  return redact.has("label") && isOurs(owner) ? owner.split("/").slice(0, 4).join("/") : owner;
}

/** Of which client a claim is; null if it is none of ours. */
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
