/** Messages about the holder or the pause that blocks a lock. */

import { plain } from "@holdfast/console/text";
import type { Holder, Pause } from "holdfast";
import { formatMs } from "../../frame/durations.js";

/** For example `ci-7/4211 (api)`. For a client that is not a Holdfast client, whatever is known about it. */
export function processOf({
  host,
  pid,
  clientName,
  owner,
}: Pick<Holder, "host" | "pid" | "clientName" | "owner">): string {
  if (host === undefined) return `a client that does not say who it is (owner ${plain(owner)})`;
  return `${plain(host)}/${pid ?? "?"}${clientName ? ` (${plain(clientName)})` : ""}`;
}

/** A message for a lock that has no holder but is not granted, with the usual reason if the kind has one. */
export function ungrantedMessage(name: string, kind: string): string {
  const message = `waiting for ${plain(name)}, which has no holder and is not granted now`;
  if (kind !== "redlock") return message;
  return `${message}. A server of a Redlock that started a moment ago grants nothing until all earlier leases have ended`;
}

/**
 * For example `deploy is held by ci-7/4211 (api) since 3m12s, lease left 24s, token 1795198449998240: "release 4.2"`.
 * `nowMs` is server time, as are all times of holders and pauses.
 */
export function heldMessage(name: string, holder: Holder | undefined, nowMs: number): string {
  if (holder === undefined) return `${plain(name)} is held by another client`;
  const { sinceAtMs, leaseLeftMs, token, label } = holder;
  const facts = [
    ` since ${sinceAtMs === undefined ? "" : formatMs(Math.max(0, nowMs - sinceAtMs))}`,
    leaseLeftMs === Infinity ? ", lease without end" : `, lease left ${formatMs(leaseLeftMs)}`,
    token === undefined ? "" : `, token ${token}`,
    label ? `: "${plain(label)}"` : "",
  ];
  if (sinceAtMs === undefined) facts[0] = "";
  return `${plain(name)} is held by ${processOf(holder)}${facts.join("")}`;
}

/** For example `nightly is paused by ana@ops-1 since 1h04m: "db maintenance"`. */
export function pausedMessage(
  name: string,
  { by, sinceAtMs, label }: Pick<Pause, "by" | "sinceAtMs" | "label">,
  nowMs: number,
): string {
  const since = formatMs(Math.max(0, nowMs - sinceAtMs));
  return `${plain(name)} is paused by ${plain(by)} since ${since}: "${plain(label)}"`;
}

/** A holder for JSON: the fields of `inspect`, with `null` for unknown values. */
export function holderJson(holder: Holder | undefined): object | null {
  if (holder === undefined) return null;
  const { owner, host, pid, clientName, token, sinceAtMs, leaseLeftMs, label } = holder;
  return {
    owner,
    host: host ?? null,
    pid: pid ?? null,
    app: clientName || null,
    token: token ?? null,
    sinceAtMs: sinceAtMs ?? null,
    leaseLeftMs: leaseLeftMs === Infinity ? null : leaseLeftMs,
    label: label || null,
  };
}
