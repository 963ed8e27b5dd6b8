/**
 * The summary of the first page: how many locks are held, awaited, paused and held by gone clients, each with its
 * filter.
 */
import type { LockRow } from "../api.js";
import { plain } from "../plain.js";
import { shellWord } from "../shell-word.js";

/** A number, and the filter that lists the locks that it counts. */
export interface Tally {
  readonly word: string;
  readonly n: number;
  readonly q: string;
}

/** The tallies, in display order. */
export function talliesOf(rows: readonly LockRow[]): readonly Tally[] {
  const count = (fits: (row: LockRow) => boolean): number => rows.filter(fits).length;
  return [
    { word: "held", n: count(({ state }) => state === "held"), q: "state:held" },
    { word: "waited for", n: count(({ waiterCount }) => waiterCount > 0), q: "waiting" },
    { word: "paused", n: count(({ pause }) => pause !== null), q: "paused" },
    { word: "gone", n: count(({ goneCount }) => goneCount > 0), q: "gone" },
  ];
}

/** Whether a deadlock is possible: some lock is held and has waiters. */
export function mayDeadlock(rows: readonly LockRow[]): boolean {
  return rows.some(({ holderCount, waiterCount }) => holderCount > 0 && waiterCount > 0);
}

/** What the page says if the search for deadlocks, which found `n`, did not read all locks. */
export function partialText(n: number): string {
  const more = n === 0 ? "there may be deadlocks" : "there may be more deadlocks";
  return `Not all locks were searched, so ${more}: there are too many locks, or a server did not reply.`;
}

/** Whether the typed text is the name, either unchanged or as displayed. Control characters cannot be typed. */
export function isNameTyped(typed: string, name: string): boolean {
  return typed === name || typed === plain(name);
}

/** The command that releases exactly this hold; undefined if the CLI cannot name it. */
export function releaseCommand({ name, key }: Pick<LockRow, "name" | "key">, token: number | null): string | undefined {
  if (token === null || key !== null) return undefined;
  // A name that starts with a dash would be parsed as a flag.
  if (name.startsWith("-") || plain(name) !== name) return undefined;
  return `holdfast release ${shellWord(name)} --token ${token} -m 'WHY'`;
}
