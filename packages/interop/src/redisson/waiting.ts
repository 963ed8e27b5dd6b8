/**
 * How callers wait for a Redisson lock: they subscribe to its channel, and they poll in case a message is lost or never
 * sent.
 */

import type { Inbox } from "holdfast";
import type { ForeignParts, Pauses } from "holdfast/internal";
import { Lease, type LockProtocol, type ResolvedOptions } from "holdfast/internal";
import type { Place } from "./place.js";
import type { RedissonScope } from "./scope.js";

/**
 * Pauses between the polls of subscribed waiters, which also ask when the current lease must be over. They still poll,
 * because a service may publish with the other command, and Java's SpinLock does not publish at all.
 */
export const RARELY: Pauses = { delayMs: 5_000, jitterMs: 1_000 };

/** Pauses between the polls of waiters that do not subscribe. The jitter spreads the requests of several processes. */
export const OFTEN: Pauses = { delayMs: 64, jitterMs: 60 };

/**
 * Subscribes to `channel` with the commands that match `scope.publish`. Calls `onNews` for each message.
 *
 * @throws UnsupportedError  this client can never subscribe
 * @throws StoreError        the subscription failed this time
 */
export async function listenOn(scope: RedissonScope, channel: string, onNews: () => void): Promise<Inbox> {
  const { store, commandTimeoutMs } = scope.session;
  const opening: Promise<Inbox>[] = [];
  if (scope.publish !== "sharded") opening.push(store.inbox(channel, onNews, commandTimeoutMs));
  if (scope.publish !== "plain" && store.shardInbox !== undefined) {
    opening.push(store.shardInbox(channel, onNews, commandTimeoutMs));
  }
  const ends = await Promise.allSettled(opening);
  const subscribers = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(subscribers.map((subscriber) => subscriber.close()));
  };
  const failed = ends.find((end) => end.status === "rejected");
  if (failed === undefined) return { close };
  await close();
  throw failed.reason;
}

/**
 * Returns the parts of a lock whose releases notify all waiters on one channel.
 *
 * @param channel  the channel; undefined if waiters do not subscribe
 */
export function partsOf(
  place: Place,
  protocol: LockProtocol,
  channel: string | undefined,
  defaults: ResolvedOptions = place.scope.defaults,
): ForeignParts<Lease> {
  const { scope, kind, raw } = place;
  return {
    session: scope.session,
    protocol,
    defaults,
    make: (held) => new Lease(held),
    pauses: channel === undefined ? OFTEN : RARELY,
    ...(channel === undefined ? {} : { listen: (_claim, onNews) => listenOn(scope, channel, onNews) }),
    ownerOf: scope.ownerOf,
    line: `redisson:${kind}:${raw}`,
  };
}
