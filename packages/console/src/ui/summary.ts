/** What the first page says at a glance: how many locks are held, waited for, paused and held by clients that are gone, each with the filter that lists them. */
import type { LockRow } from "../api.js";
import { plain } from "../plain.js";
import { shellWord } from "../shell-word.js";

/** One number, and the filter that lists what it counts. */
export interface Tally {
  readonly word: string;
  readonly n: number;
  readonly q: string;
}

/** In the order in which they are shown. */
export function talliesOf(rows: readonly LockRow[]): readonly Tally[] {
  const count = (fits: (row: LockRow) => boolean): number => rows.filter(fits).length;
  return [
    { word: "held", n: count(({ state }) => state === "held"), q: "state:held" },
    { word: "waited for", n: count(({ waiterCount }) => waiterCount > 0), q: "waiting" },
    { word: "paused", n: count(({ pause }) => pause !== null), q: "paused" },
    { word: "gone", n: count(({ goneCount }) => goneCount > 0), q: "gone" },
  ];
}

/** Whether a deadlock is possible at all: somebody holds a lock for which somebody waits. */
export function mayDeadlock(rows: readonly LockRow[]): boolean {
  return rows.some(({ holderCount, waiterCount }) => holderCount > 0 && waiterCount > 0);
}

/** Whether that is the name as it is, or as it is shown: control characters can be read and copied, but not typed. */
export function isNameTyped(typed: string, name: string): boolean {
  return typed === name || typed === plain(name);
}

/** The command that releases this hold and no other; undefined if the command line cannot name it. */
export function releaseCommand({ name, key }: Pick<LockRow, "name" | "key">, token: number | null): string | undefined {
  if (token === null || key !== null) return undefined;
  // A name that begins with a dash would be read as a flag.
  if (name.startsWith("-") || plain(name) !== name) return undefined;
  return `holdfast release ${shellWord(name)} --token ${token} -m 'WHY'`;
}
