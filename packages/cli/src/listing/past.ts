/** The history of locks, as `history`, `show`, `top` and `elect --who` print it. */
import type { Holdfast } from "holdfast";
import {
  appendHistory,
  type HistoryEntry,
  type HistoryEvent,
  type ReadHistoryOptions,
  readHistory,
  recordHistory,
} from "holdfast/admin";
import { formatMs } from "../frame/durations.js";
import { failureOf } from "../frame/failures.js";
import type { Column, Style } from "../frame/output.js";
import { formatInstant } from "../text/instants.js";
import { clientIdOf } from "./people.js";

export type { HistoryEntry } from "holdfast/admin";

/** Returns past events, newest first. Current holds are not included, because the lock itself shows them. */
export async function pastOf(holdfast: Holdfast, options: ReadHistoryOptions): Promise<readonly HistoryEntry[]> {
  return await readHistory(holdfast, { outcome: PAST_OUTCOMES, ...options });
}

/** The outcomes of events that are over. */
export const PAST_OUTCOMES = ["released", "lost", "expired", "forced", "skipped", "paused", "resumed"] as const;

/**
 * Records what this process does with its locks from now on.
 *
 * @returns a function that stops the recording, and resolves when all events are written or dropped
 */
export function recordOwn(holdfast: Holdfast): () => Promise<void> {
  const recording = recordHistory(holdfast);
  return async () => await recording.stop();
}

/**
 * Adds an operator's action to the history of a lock.
 *
 * @returns the failure as text; undefined if there was none. Never rejects, because the action itself has succeeded
 */
export async function recordDeed(holdfast: Holdfast, event: HistoryEvent): Promise<string | undefined> {
  try {
    await appendHistory(holdfast, event);
    return undefined;
  } catch (error) {
    return `it was not recorded in the history: ${failureOf(error).message}`;
  }
}

/** How many times the leader of an election changed; undefined if no client recorded it. */
export async function transitionsOf(holdfast: Holdfast, name: string, sinceMs: number): Promise<number | undefined> {
  const entries = await readHistory(holdfast, { name, sinceMs, limit: 10_000 });
  const terms = new Set(entries.filter(({ kind }) => kind === "election").map(({ token }) => token));
  terms.delete(undefined);
  return terms.size === 0 ? undefined : terms.size;
}

/** Whether the entry records an action of an operator, not of a holder. */
function isDeed({ outcome }: HistoryEntry): boolean {
  return outcome === "paused" || outcome === "resumed";
}

/** The holder, or the person who acted. */
function whoDid(entry: HistoryEntry): string | undefined {
  const { by, host, pid, clientName, owner } = entry;
  if (isDeed(entry) && by !== undefined) return by;
  if (host !== undefined) return `${host}/${pid ?? "?"}${clientName === undefined ? "" : ` ${clientName}`}`;
  return owner === undefined ? by : (clientIdOf(owner) ?? owner);
}

const STYLES: Readonly<Record<string, Style>> = { lost: "red", expired: "red", forced: "yellow", paused: "yellow" };

function durationText(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : formatMs(ms);
}

/** For example `by ana@ops-1: wrong deploy`. */
function reasonText(entry: HistoryEntry): string | undefined {
  const { by, reason, label } = entry;
  const why = reason ?? label;
  if (by === undefined || isDeed(entry)) return why;
  return why === undefined ? `by ${by}` : `by ${by}: ${why}`;
}

/** The columns of a history. */
export function historyColumns({ withName }: { readonly withName: boolean }): readonly Column<HistoryEntry>[] {
  return [
    { heading: "WHEN", cell: ({ atMs }) => formatInstant(atMs) },
    ...(withName ? [{ heading: "NAME", cell: ({ name }: HistoryEntry) => name }] : []),
    { heading: "HOLDER", cell: whoDid },
    { heading: "WAITED", cell: ({ waitedMs }) => durationText(waitedMs || undefined) },
    { heading: "HELD", cell: ({ heldMs }) => durationText(heldMs) },
    { heading: "OUTCOME", cell: ({ outcome }) => outcome, style: ({ outcome }) => STYLES[outcome] },
    { heading: "REASON", cell: reasonText },
  ];
}

/** One history entry for JSON documents. */
export function historyJson(entry: HistoryEntry): object {
  return {
    name: entry.name,
    kind: entry.kind,
    outcome: entry.outcome,
    atMs: entry.atMs,
    grantedAtMs: entry.grantedAtMs ?? null,
    host: entry.host ?? null,
    pid: entry.pid ?? null,
    app: entry.clientName ?? null,
    owner: entry.owner ?? null,
    token: entry.token ?? null,
    label: entry.label ?? null,
    waitedMs: entry.waitedMs ?? null,
    heldMs: entry.heldMs ?? null,
    reason: entry.reason ?? null,
    tick: entry.tick ?? null,
    errorName: entry.errorName ?? null,
    by: entry.by ?? null,
    untilAtMs: entry.untilAtMs ?? null,
  };
}
