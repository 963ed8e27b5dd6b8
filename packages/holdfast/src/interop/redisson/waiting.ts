/** How a lock of Redisson is waited for: on its channels, and by the clock in case a message is lost or never sent. */
import type { Inbox } from "../../index.js";
import { Lease, type LockProtocol, type ResolvedOptions } from "../../internal.js";
import type { ForeignParts } from "../foreign-lock.js";
import type { Pauses } from "../foreign-waiter.js";
import type { Place } from "./place.js";
import type { RedissonScope } from "./scope.js";

/**
 * Whoever hears asks at the end of the present lease, and this often: a service that publishes with the other command, or a
 * SpinLock of Java, which does not publish at all, would be noticed only then.
 */
export const RARELY: Pauses = { delayMs: 5_000, jitterMs: 1_000 };

/** Whoever does not listen. The jitter keeps those of several processes apart. */
export const OFTEN: Pauses = { delayMs: 64, jitterMs: 60 };

/**
 * Hears what is published on `channel`, with either command that is in use.
 *
 * @throws UnsupportedError, StoreError  it cannot listen at all, or not now
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

/** What all locks are made of that wake everybody on one channel. @param channel  undefined if nobody listens */
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
