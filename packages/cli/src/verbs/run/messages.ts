/** Messages about the holder or the pause that blocks a lock. */

import { plain } from "@holdfast/console/text";
import type { Holder, Pause } from "holdfast";
import { formatMs } from "../../frame/durations.js";

/** For example `ci-7/4211 (api)`. If the host is unknown, a description with the owner id. */
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
  const message = `waiting for ${plain(name)}: it has no holder, but Redis is not granting it yet`;
  if (kind !== "redlock") return message;
  return `${message}. A server of a Redlock that started a moment ago grants nothing until all earlier leases have ended`;
}

/**
 * For example `deploy is held by ci-7/4211 (api) for 3m12s, lease left 24s, token 1795198449998240: "release 4.2"`.
 * `nowMs` is server time, as are all times of holders and pauses.
 */
export function heldMessage(name: string, holder: Holder | undefined, nowMs: number): string {
  if (holder === undefined) return `${plain(name)} is held by another client`;
  const { sinceAtMs, leaseLeftMs, token, label } = holder;
  const facts = [
    sinceAtMs === undefined ? "" : ` for ${formatMs(Math.max(0, nowMs - sinceAtMs))}`,
    leaseLeftMs === Infinity ? ", no expiry" : `, lease left ${formatMs(leaseLeftMs)}`,
    token === undefined ? "" : `, token ${token}`,
    label ? `: "${plain(label)}"` : "",
  ];
  return `${plain(name)} is held by ${processOf(holder)}${facts.join("")}`;
}

/** For example `nightly has been paused by ana@ops-1 for 1h04m: "db maintenance"`. */
export function pausedMessage(
  name: string,
  { by, sinceAtMs, label }: Pick<Pause, "by" | "sinceAtMs" | "label">,
  nowMs: number,
): string {
  const span = formatMs(Math.max(0, nowMs - sinceAtMs));
  return `${plain(name)} has been paused by ${plain(by)} for ${span}: "${plain(label)}"`;
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
