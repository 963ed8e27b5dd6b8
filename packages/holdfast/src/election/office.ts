/** How a process stands in an election, as it knows without asking: what it holds, and what it does with that. */

import { Hold } from "../core/hold.js";
import type { ReleaseOutcome } from "../core/lease.js";
import type { Session } from "../core/session.js";
import { validUntil } from "../core/time.js";
import type { Leadership } from "./leadership.js";

/** How this process stands in an election. */
export interface ElectionHealth {
  /** False if something in this process leads, or works on as if it did, and has been out of touch for too long. */
  readonly ok: boolean;
  /**
   * - `leader`: this Holdfast holds a leadership
   * - `unsure`: the same, but half of its lease has passed without a word of the server, so that others may lead soon
   * - `follower`: it holds none
   */
  readonly role: "leader" | "follower" | "unsure";
  /** How long ago the server confirmed that it leads, in ms; 0 for a follower, unless work of `lead` has outlasted its term. */
  readonly ageMs: number;
}

/** What `lead` of `holdfast/recipes` does in an election, for the verbs that name no leadership. */
export interface Office {
  readonly session: Session;
  readonly key: string;
  /** The leadership that it has, or had last. */
  readonly leadership: Leadership | undefined;
  /** How long work has gone on after the last word that it leads, in ms; 0 unless its leadership is lost. */
  overrunMs(): number;
  /** See `Election.resign`. */
  resign(): Promise<ReleaseOutcome | undefined>;
}

/** All in this process. */
export const offices: Set<Office> = new Set();

/** What `lead` does with that key, if anything. */
export function officeOf(session: Session, key: string): Office | undefined {
  return [...offices].find((office) => office.session === session && office.key === key);
}

/** See `Election.health`. */
export function healthOf(session: Session, key: string, withinMs: number): ElectionHealth {
  const hold = session.mailbox
    .recipients()
    .find((each): each is Hold => each instanceof Hold && each.lockKey === key && each.validForMs() > 0);
  const ageMs = hold === undefined ? (officeOf(session, key)?.overrunMs() ?? 0) : unconfirmedMs(hold);
  const role = hold === undefined ? "follower" : ageMs > hold.leaseMs / 2 ? "unsure" : "leader";
  return { ok: ageMs <= withinMs, role, ageMs };
}

/** How long ago the request was sent by which it is held, in ms, by whichever clock says more. */
function unconfirmedMs(hold: Hold): number {
  const wholeMs = validUntil({ monotonicMs: 0, wallMs: 0 }, hold.leaseMs).wallMs;
  return Math.max(0, wholeMs - hold.validForMs());
}
