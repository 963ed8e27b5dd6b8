/**
 * Events on the diagnostics channel `holdfast:peer`: actions of foreign clients on a shared lock that Holdfast cannot
 * prevent. Events cost nothing unless someone subscribes.
 */
import { type Channel, channel } from "node:diagnostics_channel";

/**
 * Message on the channel `holdfast:peer`. The values of `what`:
 *
 * - `taken-over`: an expired lock still existed, and Holdfast took it over. Its holder crashed or overran its lease. If
 *   `owner` is undefined, a client of the other system may also have left it behind without holding it.
 * - `overwritten`: a client came too late to take the lock, but has overwritten the value of a lock that Holdfast
 *   holds. Holdfast restored its own value. At a release, Holdfast kept or deleted the foreign value, as the option
 *   `overwritten` says.
 * - `deleted`: a lock that Holdfast held was deleted early, by the release of a client that overran its lease or by a
 *   manual DEL. Holdfast's lease counts as lost.
 * - `clock-ahead`: a value ends later than a client with a correct clock would write. Its clock is ahead by at least
 *   `ms`, or its lease is longer than the dialect states. A clock that is ahead by more than a lease takes over live
 *   locks.
 */
export interface PeerEvent {
  /** Kind of the lock. */
  readonly kind: string;
  /** Name of the lock. */
  readonly lockName: string;
  /** Key of the lock on the server. */
  readonly key: string;
  /** What happened. */
  readonly what: "taken-over" | "overwritten" | "deleted" | "clock-ahead";
  /** The value that Holdfast found at the key; empty if there was none. */
  readonly value: string;
  /**
   * The Holdfast claim concerned: for `taken-over` the former holder, otherwise the current one. Undefined if unknown.
   */
  readonly owner: string | undefined;
  /**
   * Milliseconds. For `taken-over`, how long the lock had been expired. For `clock-ahead`, the minimum by which the
   * clock is ahead. Otherwise undefined.
   */
  readonly ms: number | undefined;
}

const peers: Channel = channel("holdfast:peer");

/** Publishes an event. Calls `make` only if the channel has subscribers. */
export function publishPeer(make: () => PeerEvent): void {
  if (peers.hasSubscribers) peers.publish(make());
}
