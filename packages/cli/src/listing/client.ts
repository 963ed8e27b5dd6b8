import type { ClientEntry } from "holdfast/admin";

/** Whether a client has a record and has not written it for a minute. Without a record, nothing is known of it. */
export function isGone({ isHeardOf, lastSeenAtMs }: ClientEntry): boolean {
  return !isHeardOf && lastSeenAtMs !== undefined;
}
