import type { ClientEntry } from "holdfast/admin";

/**
 * Whether a client has a record but has not updated it for a minute. Without a record, the state of the client is
 * unknown.
 */
export function isGone({ isHeardOf, lastSeenAtMs }: ClientEntry): boolean {
  return !isHeardOf && lastSeenAtMs !== undefined;
}
