/** Describes why a lock was lost. */

import { plain } from "@holdfast/console/text";
import { type Lease, LeaseLostError } from "holdfast";
import { formatMs } from "../../frame/durations.js";

/**
 * Returns the reason for the loss. `unconfirmed` means that the lease has not ended yet: the child is ended before that
 * can happen.
 */
export function lossReason(lease: Lease): string {
  const why: unknown = lease.signal.reason;
  if (why instanceof LeaseLostError) return why.reason;
  return lease.validForMs() > 0 ? "unconfirmed" : "expired";
}

/** For example `LOST deploy: no confirmed renewal for 23.7s; sent TERM`. */
export function lossMessage(
  name: string,
  lease: Lease,
  unconfirmedMs: number,
  sent: NodeJS.Signals | undefined,
): string {
  const reaction = sent === undefined ? "" : `; sent ${sent.replace(/^SIG/, "")}`;
  return `LOST ${plain(name)}: ${lossText(lease, unconfirmedMs)}${reaction}`;
}

/** The reason for the loss in words. @param unconfirmedMs  the time without a confirmed renewal, if known */
export function lossText(lease: Lease, unconfirmedMs?: number): string {
  const silence = `no confirmed renewal${unconfirmedMs === undefined ? "" : ` for ${spanText(unconfirmedMs)}`}`;
  switch (lossReason(lease)) {
    case "unconfirmed":
      return silence;
    case "expired":
      return `${silence}, and the lease has ended: another client may hold it`;
    case "force-released":
      return `released by force${lease.signal.reason instanceof LeaseLostError ? byWhom(lease.signal.reason) : ""}`;
    case "server-lost":
      return "Redis no longer holds the lease (failover, lost memory, or a DEL)";
    case "max-hold":
      return "held for longer than --max-hold allows";
    default:
      return "the lease is over";
  }
}

function spanText(ms: number): string {
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)}s` : formatMs(ms);
}

/** Names who force-released the lock and why, if that was recorded. */
function byWhom({ forced }: LeaseLostError): string {
  const who = forced?.by === undefined ? "" : ` by ${plain(forced.by)}`;
  return `${who}${forced?.reason === undefined ? "" : `: "${plain(forced.reason)}"`}`;
}
