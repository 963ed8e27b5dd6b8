/** Formats the page of `show` for people. */

import { plain, serversSentence, unreadableSentence } from "@holdfast/console/text";
import { formatMs } from "../../frame/durations.js";
import { type Paint, paintFor, table } from "../../frame/output.js";
import type { Streams } from "../../frame/streams.js";
import { leftText, stateText } from "../../listing/columns.js";
import type { Found, ShownLock } from "../../listing/found.js";
import { goneSentence, releaseCommand } from "../../listing/gone.js";
import { type HistoryEntry, historyColumns } from "../../listing/past.js";
import { whoIs } from "../../listing/people.js";
import { pauseSentence, quoted, topologySentence } from "../../listing/sentences.js";
import { formatInstant } from "../../text/instants.js";

/** The data to show. */
export interface Page {
  readonly name: string;
  /** The uses of the name, the most informative first. */
  readonly found: readonly Found[];
  readonly history: readonly HistoryEntry[];
  /** Server time of the reading, in ms since 1970. */
  readonly atMs: number;
  readonly out: Streams["stdout"];
  readonly color: "auto" | "always" | "never";
}

/** Returns the lines of the page. */
export function pageLines({ name, found, history, atMs, out, color }: Page): string[] {
  const paint = paintFor(out, color);
  const lines =
    found.length === 0
      ? [`${paint("bold", plain(name))}: free`]
      : found.flatMap(({ entry }, i) => [...(i === 0 ? [] : [""]), ...lockLines(entry, atMs, paint)]);
  if (history.length > 0) {
    lines.push("  history");
    lines.push(...indented(table(historyColumns({ withName: false }), history, { paint })));
  }
  return lines;
}

function lockLines(lock: ShownLock, atMs: number, paint: Paint): string[] {
  const { pause, permits, leader, waiters, waiterCount, conditions } = lock;
  const lines = [`${paint("bold", plain(lock.name))}: ${lock.kind}, ${stateText(lock, atMs)}`];
  const unreadable = unreadableSentence(lock);
  if (unreadable !== undefined) lines.push(`  ${unreadable}`);
  const topology = topologySentence(lock);
  if (topology !== undefined) lines.push(`  ${topology}`);
  if (pause !== undefined) lines.push(`  paused   by ${pauseSentence(pause, atMs)}`);
  for (const holder of lock.holders) lines.push(...holderLines(lock, holder, atMs));
  if (lock.servers !== undefined) lines.push(`  servers  ${serversSentence(lock.servers)}`);
  if (leader !== undefined) lines.push(`  value    ${leader.value === "" ? "-" : plain(leader.value)}`);
  if (permits !== undefined) lines.push(`  permits  ${permits.used} of ${permits.limit ?? "?"} in use`);
  if (waiterCount > 0) {
    const more = waiterCount > waiters.length ? `; the first ${waiters.length}:` : "";
    lines.push(`  waiting  ${waiterCount}${more}`);
    lines.push(
      ...indented(
        table(
          WAITER_COLUMNS,
          waiters.map((waiter, i) => ({ lock, waiter, place: i + 1, atMs })),
          { paint },
        ),
      ),
    );
  }
  for (const condition of conditions)
    lines.push(`  condition ${plain(condition.name)}: ${condition.waiterCount} waiting`);
  return lines;
}

function holderLines(lock: ShownLock, holder: ShownLock["holders"][number], atMs: number): string[] {
  const { sinceAtMs, leaseLeftMs, token, owner, slots, permits, label, mode } = holder;
  const since = sinceAtMs === undefined ? "" : ` for ${formatMs(atMs - sinceAtMs)} (since ${formatInstant(sinceAtMs)})`;
  const what = [
    ...(lock.kind === "read-write-lock" && mode === "shared" ? ["reads"] : []),
    ...(lock.permits === undefined ? [] : [permitsText(permits)]),
    ...(slots.length === 0 ? [] : [`slot ${slots.join(",")}`]),
  ];
  return [
    `  holder   ${plain(whoIs(holder))}${since}, lease left ${leftText(leaseLeftMs)}${what.map((one) => `, ${one}`).join("")}${quoted(label)}`,
    `           token ${token ?? "-"}  owner ${plain(owner)}`,
    ...goneLines(lock, holder, atMs),
  ];
}

/** Describes a holder whose client is gone, with the command that frees the lock before the lease ends. */
function goneLines(lock: ShownLock, holder: ShownLock["holders"][number], atMs: number): string[] {
  const gone = goneSentence(holder, atMs);
  if (gone === undefined) return [];
  return [`           ${gone}${lock.needsTopology === undefined ? `: ${releaseCommand(lock.name, holder)}` : ""}`];
}

function permitsText(permits: number): string {
  return permits === 1 ? "1 permit" : `${permits} permits`;
}

interface WaiterRow {
  readonly lock: ShownLock;
  readonly waiter: ShownLock["waiters"][number];
  readonly place: number;
  readonly atMs: number;
}

const WAITER_COLUMNS = [
  { heading: "NEXT", cell: ({ place }: WaiterRow) => String(place) },
  {
    heading: "WHO",
    cell: ({ waiter, atMs }: WaiterRow) => {
      const { goneSinceAtMs: gone } = waiter;
      return `${whoIs(waiter)}${gone === undefined ? "" : ` (gone for ${formatMs(Math.max(0, atMs - gone))})`}`;
    },
  },
  {
    heading: "WAITED",
    cell: ({ waiter: { sinceAtMs }, atMs }: WaiterRow) =>
      sinceAtMs === undefined ? undefined : formatMs(atMs - sinceAtMs),
  },
  {
    heading: "FOR",
    cell: ({ lock, waiter: { mode, permits } }: WaiterRow) => {
      if (lock.permits !== undefined) return permitsText(permits);
      return lock.kind === "read-write-lock" && mode === "shared" ? "reading" : undefined;
    },
  },
  { heading: "OWNER", cell: ({ waiter }: WaiterRow) => waiter.owner },
  { heading: "LABEL", cell: ({ waiter }: WaiterRow) => waiter.label },
] as const;

function indented(text: string): string[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => `    ${line}`);
}
