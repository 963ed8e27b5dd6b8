/**
 * What clients of another system do to a shared lock that no client can prevent, on the diagnostics channel `holdfast:peer`.
 * Nothing is built or sent while nobody listens.
 */
import { type Channel, channel } from "node:diagnostics_channel";

/**
 * `holdfast:peer`. Which of these it is:
 *
 * - `taken-over`: an expired lock was still there, and is ours now. Its holder died or overran; or, if `owner` is undefined, it
 *   may also be a lock that a client of the other system has left behind without holding it
 * - `overwritten`: a client that came too late to take it has overwritten the value of a lock that we hold. It was put right, or
 *   left where it is if we were releasing
 * - `deleted`: a lock that we held is gone before its time: the release of a client that had overrun, or a DEL by hand. Our
 *   lease counts as lost
 * - `clock-ahead`: a value ends later than a client with a right clock writes it: its clock is ahead by `ms` at least, or its
 *   lease is longer than the dialect says. A clock that is ahead by more than a lease takes live locks away
 */
export interface PeerEvent {
  readonly kind: string;
  readonly lockName: string;
  readonly key: string;
  readonly what: "taken-over" | "overwritten" | "deleted" | "clock-ahead";
  /** What stood under the key; empty if nothing did. */
  readonly value: string;
  /** The claim of a Holdfast that it concerns: its former holder if it was taken over, else ours; undefined if none is known. */
  readonly owner: string | undefined;
  /** Of `taken-over`, how long it had been expired; of `clock-ahead`, by how much it is ahead at least; else undefined. */
  readonly ms: number | undefined;
}

const peers: Channel = channel("holdfast:peer");

/** Tells whoever listens. */
export function publishPeer(make: () => PeerEvent): void {
  if (peers.hasSubscribers) peers.publish(make());
}
