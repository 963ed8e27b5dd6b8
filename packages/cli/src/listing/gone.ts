/** Describes holders whose client is gone while their lease still runs, and holders whose renewal is late. */

import { shellWord } from "@holdfast/console/text";
import { formatMs } from "../frame/durations.js";
import type { ShownLock } from "./found.js";

type Holder = ShownLock["holders"][number];

/** The number of holders whose client is gone. */
export function goneCount({ holders }: Pick<ShownLock, "holders">): number {
  return holders.filter(({ goneSinceAtMs }) => goneSinceAtMs !== undefined).length;
}

/** `gone for 8m12s`, or `2 gone` with several holders; undefined if no client is gone. */
export function goneText(lock: Pick<ShownLock, "holders">, atMs: number): string | undefined {
  const gone = goneCount(lock);
  const [{ goneSinceAtMs } = { goneSinceAtMs: undefined }] = lock.holders;
  if (gone === 0) return undefined;
  return lock.holders.length > 1 || goneSinceAtMs === undefined
    ? `${gone} gone`
    : `gone for ${formatMs(Math.max(0, atMs - goneSinceAtMs))}`;
}

/** `its client has been gone for 8m12s, and its lease ends in 21m`; undefined if the client is alive. */
export function goneSentence({ goneSinceAtMs, leaseLeftMs }: Holder, atMs: number): string | undefined {
  if (goneSinceAtMs === undefined) return undefined;
  const end = Number.isFinite(leaseLeftMs) ? `ends in ${formatMs(leaseLeftMs)}` : "has no end";
  return `its client has been gone for ${formatMs(Math.max(0, atMs - goneSinceAtMs))}, and its lease ${end}`;
}

/** The command that releases the lock only if this holder still has it. */
export function releaseCommand(name: string, { token, owner }: Pick<Holder, "token" | "owner">): string {
  const whose = token === undefined ? `--owner ${shellWord(owner)}` : `--token ${token}`;
  return `holdfast release ${shellWord(name)} ${whose} -m WHY`;
}

/**
 * Whether less than half of the lease is left. A holder renews after a third of its lease, so a holder that renews on
 * time always has at least about two thirds left.
 */
export function isLate({ owner, leaseLeftMs }: Holder): boolean {
  const leaseMs = Number(/^[\w-]+\/\d+\/(\d+)\/\d+(?:\/|$)/.exec(owner)?.[1] ?? 0);
  return leaseLeftMs < leaseMs / 2;
}
