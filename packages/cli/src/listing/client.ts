import type { ClientEntry } from "holdfast/admin";

/** Whether a client holds or waits for locks that the list contains. */
export function isInUse({ held, waits }: ClientEntry): boolean {
  return held.length + waits.length > 0;
}

/**
 * Whether a client that holds or waits has not updated its record for a minute. Without a record, the state of the
 * client is unknown.
 */
export function isGone(client: ClientEntry): boolean {
  return isInUse(client) && !client.isHeardOf && client.lastSeenAtMs !== undefined;
}
