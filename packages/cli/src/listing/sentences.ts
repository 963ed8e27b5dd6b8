/** Sentences about the state of a lock. They can quote hostile text, which is escaped here. */

import { addressesOf, plain } from "@holdfast/console/text";
import type { Holder, Pause } from "holdfast";
import { formatMs } from "../frame/durations.js";
import { formatInstant } from "../text/instants.js";
import { leftText } from "./columns.js";
import type { ShownLock } from "./found.js";
import { whoIs } from "./people.js";

/** A note for a lock that this connection shows only in part; undefined for all others. */
export function topologySentence(lock: Pick<ShownLock, "needsTopology" | "server" | "perServer">): string | undefined {
  if (lock.needsTopology === "redlock")
    return "is a Redlock: this is what one server knows of it. Use --redlock with all its servers";
  if (lock.needsTopology !== "single-server") return undefined;
  const addresses = addressesOf(lock);
  const where = addresses.length === 0 ? "" : ` (${plain(addresses.join(", "))})`;
  return lock.perServer === undefined
    ? `is a lock on a single server${where}, not on all servers of --redlock. Use -r with that server alone`
    : `is a different lock on each of ${lock.perServer.length} servers${where}, not on all servers of --redlock. Use -r with one server alone`;
}

/** Returns `: "release 4.2"`, or an empty string if there is no label. */
export function quoted(label: string | undefined): string {
  return label === undefined || label === "" ? "" : `: "${plain(label)}"`;
}

/** For example `ci-7/4211 api for 3m12s, lease left 24s, token 1795198449998240: "release 4.2"`. */
export function holderSentence(holder: Holder & { readonly goneSinceAtMs?: number | undefined }, atMs: number): string {
  const { sinceAtMs, leaseLeftMs, token, label, goneSinceAtMs: gone } = holder;
  const facts = [
    `${plain(whoIs(holder))}${sinceAtMs === undefined ? "" : ` for ${formatMs(atMs - sinceAtMs)}`}`,
    `lease left ${leftText(leaseLeftMs)}`,
    ...(token === undefined ? [] : [`token ${token}`]),
    ...(gone === undefined ? [] : [`gone for ${formatMs(Math.max(0, atMs - gone))}`]),
  ];
  return facts.join(", ") + quoted(label);
}

/** For example `ana@ops-1 since 2026-11-22 14:46:00Z (1h04m ago), until 2026-11-22 18:00:00Z (2h10m): "new disk"`. */
export function pauseSentence({ by, sinceAtMs, untilAtMs, label }: Pause, atMs: number): string {
  const since = `since ${formatInstant(sinceAtMs)} (${formatMs(atMs - sinceAtMs)} ago)`;
  return `${plain(by)} ${since}, ${untilText(untilAtMs, atMs)}${quoted(label)}`;
}

/** `until 2026-11-22 18:00:00Z (2h10m)`, or `until you resume it`. */
export function untilText(untilAtMs: number | undefined, atMs: number): string {
  if (untilAtMs === undefined) return "until you resume it";
  return `until ${formatInstant(untilAtMs)} (${formatMs(untilAtMs - atMs)})`;
}
