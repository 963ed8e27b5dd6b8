/** The properties of a world of claims: in each state, after each script, and after all clients have ended. */

import { INBOX, type LockKind } from "./lock-kinds.js";
import type { LockState, Verb } from "./lock-state.js";
import { isValid, type Place } from "./place.js";
import type { Held } from "./server.js";

/** The parts of a world that the properties need. */
export interface Subject {
  readonly setting: { readonly kind: LockKind; readonly protocols?: readonly (0 | 1)[] };
  readonly places: readonly Place[];
  believed(state: LockState, number: number): number;
}

/** S2 and X1: the sum of what the clients believe to hold. @param byClock  whether clients check their clocks */
export function brokenInState(world: Subject, state: LockState, byClock: boolean): string | undefined {
  let used = 0;
  let oldest = Number.POSITIVE_INFINITY;
  let latest = 0;
  for (const [number, claim] of state.claims.entries()) {
    latest = Math.max(latest, claim.tok);
    const isOver = byClock && !isValid(claim);
    const weight = world.believed(state, number);
    if (weight === 0 || isOver) continue;
    used += weight;
    oldest = Math.min(oldest, claim.tok);
  }
  const { capacity, tooMany } = world.setting.kind;
  if (used > capacity) return tooMany;
  if (capacity === 1 && used === 1 && latest > oldest)
    return "S2: a lease is valid again after another client held the lock";
  return undefined;
}

/** L4, L7: nothing is left when all clients have ended and no message is in flight. */
export function atRest(world: Subject, state: LockState): string | undefined {
  const areGone = state.claims.every(({ ph }) => ph === "end" || ph === "idle");
  if (!areGone || state.late === 1 || state.requests.length > 0 || state.pushes.length > 0) return undefined;
  if (world.setting.kind.holders(state.held).size > 0) {
    return isReapable(world, state) ? undefined : "ghost: it is held by nobody";
  }
  if (world.setting.kind.waiters(state.held).length > 0) return "ghost: nobody waits in the queue";
  return undefined;
}

/** Whether only ended leases of permits are left, because permits are reaped by the next call, not earlier. */
function isReapable(world: Subject, state: LockState): boolean {
  const ends = state.held.find(([key]) => key === "h")?.[2];
  if (world.setting.kind.capacity === 1 && ends === undefined) return false;
  if (typeof ends !== "object") return false;
  return ends.every((score, i) => i % 2 === 0 || score === "inf" || Number(score) <= state.t);
}

/** Whether this script may remove a claim from the queue, because its client did not confirm a grant by message. */
export function mayLose(world: Subject, before: LockState, owner: string, verb: Verb): boolean {
  const place = world.places.find((each) => each.owner === owner);
  return place !== undefined && before.gone.includes(place.client) && looksForGone(world, before, verb);
}

/** Whether this script checks for ended unconfirmed grants; for a mutex, only an acquire that finds it free does. */
export function looksForGone({ setting: { kind } }: Subject, before: LockState, verb: Verb): boolean {
  if (kind.capacity === 1 && !before.held.some(([key]) => key === "h")) {
    return verb === "acquire" && kind.holders(before.held).size === 0;
  }
  return !["extend", "confirm", "renew"].includes(verb);
}

/** Checks what a script has done: that the right waiter is next, and that a free lock is granted. */
export function brokenOnServer(
  world: Subject,
  before: LockState,
  after: Held,
  caller: string,
  verb: Verb,
  listening: readonly string[],
): string | undefined {
  const { kind } = world.setting;
  const isThere = (owner: string): boolean => listening.includes(`${INBOX}${owner.split("/")[0]}`);
  const [had, has] = [kind.holders(before.held), kind.holders(after)];
  const used = [...has.values()].reduce((sum, weight) => sum + weight, 0);
  if (used > kind.capacity) return kind.tooManyGiven;
  const waited = kind
    .waiters(before.held)
    .filter((owner) => owner === caller || isThere(owner))
    .filter((owner) => has.has(owner) || !mayLose(world, before, owner, verb));
  const waits = kind.waiters(after);
  if (waits.some((owner) => has.has(owner))) return "a holder is in the queue";
  const granted = [...has.keys()].filter((owner) => !had.has(owner));
  if (granted.some((owner) => owner !== caller && !isThere(owner)))
    return "L6: it is granted to a process that is gone";

  const others = waited.filter((owner) => owner !== caller);
  const isLeaving = verb === "leave" || verb === "quit";
  const turn = isLeaving ? others : waited.includes(caller) ? waited : [...others, caller];
  const lastServed = Math.max(-1, ...granted.map((owner) => turn.indexOf(owner)));
  const passedOver = turn.slice(0, lastServed + 1).filter((owner) => !has.has(owner));
  if (passedOver.length > 0) return "X3: a later caller is granted first";

  const head = waits.find((owner) => owner === caller || isThere(owner));
  // A caller that already holds gets its reply immediately, and no other waiter is granted.
  const isFreed =
    (verb === "acquire" && !had.has(caller)) ||
    (!["acquire", "extend", "confirm", "renew"].includes(verb) && (kind.capacity > 1 || had.size > 0));
  const weight = world.places.find(({ owner }) => owner === head)?.weight ?? 1;
  const isPaused = after.some(([key]) => key === "p");
  if (head !== undefined && isFreed && !isPaused && used + weight <= kind.capacity) {
    return "L3: it is free although a client waits for it";
  }
  return undefined;
}
