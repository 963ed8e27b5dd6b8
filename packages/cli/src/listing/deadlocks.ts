/** Prints possible deadlocks for people and for programs. */

import { plain } from "@holdfast/console/text";
import type { Deadlock, DeadlockClaim, DeadlockMember } from "holdfast/admin";
import { formatMs } from "../frame/durations.js";
import { leftText } from "./columns.js";
import { releaseCommand } from "./gone.js";
import { whoIs } from "./people.js";
import { quoted, topologySentence } from "./sentences.js";

/**
 * Lines such as `possible deadlock for 3m12s: 2 clients wait for each other`, then the members, and how to end the
 * deadlock.
 */
export function deadlockLines(deadlock: Deadlock, atMs: number): string[] {
  const { members, sinceAtMs } = deadlock;
  const since = sinceAtMs === undefined ? "" : ` for ${spanOf(sinceAtMs, atMs)}`;
  return [
    `possible deadlock${since}: ${members.length} clients wait for each other`,
    ...members.flatMap((member) => memberLines(member, atMs)),
    `  to end it: ${remedyOf(deadlock)}`,
  ];
}

/**
 * How to end the deadlock: the command that releases the hold that began last, so that the least work is lost. If this
 * connection cannot release that hold, a sentence that says what is needed.
 */
export function remedyOf(deadlock: Deadlock): string {
  const [victim] = deadlock.members;
  if (victim === undefined) return "";
  return commandFor(deadlock) ?? `release ${plain(victim.holds.name)}, which ${topologySentence(victim.holds)}`;
}

/** `remedyOf`, and that it loses the least work. */
export function explainedRemedyOf(deadlock: Deadlock): string {
  const command = commandFor(deadlock);
  return command === undefined ? `to lose the least work, ${remedyOf(deadlock)}` : `${command} (loses the least work)`;
}

function commandFor({ members: [victim] }: Deadlock): string | undefined {
  if (victim === undefined || victim.holds.needsTopology !== undefined) return undefined;
  return releaseCommand(victim.holds.name, victim.holds);
}

function memberLines({ holds, waits, ...who }: DeadlockMember, atMs: number): string[] {
  const facts = [
    `lease left ${leftText(holds.leaseLeftMs)}`,
    ...(holds.token === undefined ? [] : [`token ${holds.token}`]),
  ];
  return [
    `  ${plain(whoIs({ ...who, owner: holds.owner }))}`,
    `    holds     ${lockText(holds, atMs)}, ${facts.join(", ")}${quoted(holds.label)}`,
    `    waits for ${lockText(waits, atMs)}${quoted(waits.label)}`,
  ];
}

/** For example `stock:7 (mutex) for 3m12s`, or `stock:7 (mutex) on 10.0.0.5:6379 for 3m12s` on independent servers. */
function lockText({ name, kind, sinceAtMs, server }: DeadlockClaim, atMs: number): string {
  const where = server?.address === undefined ? "" : ` on ${plain(server.address)}`;
  return `${plain(name)} (${kind})${where}${sinceAtMs === undefined ? "" : ` for ${spanOf(sinceAtMs, atMs)}`}`;
}

function spanOf(sinceAtMs: number, atMs: number): string {
  return formatMs(Math.max(0, atMs - sinceAtMs));
}

/** One deadlock for JSON documents. */
export function deadlockJson(deadlock: Deadlock): object {
  return {
    sinceAtMs: deadlock.sinceAtMs ?? null,
    release: commandFor(deadlock) ?? null,
    members: deadlock.members.map(({ clientId, host, pid, clientName, holds, waits }) => ({
      clientId,
      host: host ?? null,
      pid: pid ?? null,
      app: clientName || null,
      holds: {
        ...claimJson(holds),
        token: holds.token ?? null,
        leaseLeftMs: Number.isFinite(holds.leaseLeftMs) ? holds.leaseLeftMs : null,
      },
      waits: claimJson(waits),
    })),
  };
}

function claimJson({ name, kind, key, owner, label, sinceAtMs, server }: DeadlockClaim): object {
  return {
    ...{ name, kind, owner },
    ...{ label: label ?? null, sinceAtMs: sinceAtMs ?? null },
    ...(key === undefined ? {} : { key }),
    ...(server?.address === undefined ? {} : { server: server.address }),
  };
}
