/**
 * The state of this process in an election, as known without asking the server: its leadership, and the work that runs
 * under it.
 */

import { Hold } from "../core/hold.js";
import type { ReleaseOutcome } from "../core/lease.js";
import type { Session } from "../core/session.js";
import { validUntil } from "../core/time.js";
import type { Leadership } from "./leadership.js";

/** The state of this process in an election. */
export interface ElectionHealth {
  /**
   * False if the server last confirmed the leadership of this process too long ago. This also applies to a lost
   * leadership while its work still runs.
   */
  readonly ok: boolean;
  /**
   * - `leader`: this Holdfast instance holds a leadership
   * - `unsure`: the same, but the server has confirmed nothing for over half of the lease, so another process may be
   *   elected soon
   * - `follower`: it holds none
   */
  readonly role: "leader" | "follower" | "unsure";
  /**
   * Age of the last confirmation from the server, in ms; 0 for a follower, unless the work of `lead` has outlasted its
   * term.
   */
  readonly ageMs: number;
}

/** A running `lead` (from `@holdfast/recipes`), for the methods of Election that are called without a leadership. */
export interface Office {
  readonly session: Session;
  readonly key: string;
  /** Its current or most recent leadership. */
  readonly leadership: Leadership | undefined;
  /**
   * If the leadership is lost but its work is still running: the time since the last confirmation by the server, in ms.
   * Otherwise 0.
   */
  overrunMs(): number;
  /** See `Election.resign`. */
  resign(): Promise<ReleaseOutcome | undefined>;
}

/** All running `lead` calls in this process. */
export const offices: Set<Office> = new Set();

/** The running `lead` for this session and key; undefined if there is none. */
export function officeOf(session: Session, key: string): Office | undefined {
  return [...offices].find((office) => office.session === session && office.key === key);
}

/** See `Election.health`. */
export function healthOf(session: Session, key: string, withinMs: number): ElectionHealth {
  const hold = session.clientInbox
    .recipients()
    .find((each): each is Hold => each instanceof Hold && each.lockKey === key && each.validForMs() > 0);
  const ageMs = hold === undefined ? (officeOf(session, key)?.overrunMs() ?? 0) : unconfirmedMs(hold);
  const role = hold === undefined ? "follower" : ageMs > hold.leaseMs / 2 ? "unsure" : "leader";
  return { ok: ageMs <= withinMs, role, ageMs };
}

/** Time since the start of the last request that the server confirmed, in ms, by the clock that shows more time. */
function unconfirmedMs(hold: Hold): number {
  const wholeMs = validUntil({ monotonicMs: 0, wallMs: 0 }, hold.leaseMs).wallMs;
  return Math.max(0, wholeMs - hold.validForMs());
}
