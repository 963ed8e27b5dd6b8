/**
 * The search's own record of unconfirmed grants by message: which clients may lose their queue places, and how much an
 * unconfirmed grant delays the others.
 *
 * The server uses the key `handed`, or a mark in the grant. This record comes from the events instead. So it detects a
 * server that remembers too much, which takes a place from a client that confirmed, and one that remembers too little,
 * which delays a waiter twice.
 */
import { HANDED, INBOX } from "./lock-kinds.js";
import { looksForGone, mayLose, type Subject } from "./lock-properties.js";
import { LETTERS } from "./lock-setting.js";
import type { LockState, Request, Verb } from "./lock-state.js";
import type { Place } from "./place.js";
import type { Held, Outcome } from "./server.js";

/** An unconfirmed grant by message must be over in the next tick. @param due  claims that had one before the tick */
export function lastsTooLong(
  { setting: { kind }, places }: Subject,
  next: LockState,
  due: readonly number[],
): string | undefined {
  const lapsed = kind.lapsed(next.held, next.t);
  const holders = [...kind.holders(next.held).keys()].filter((owner) => !lapsed.includes(owner));
  const isLong = due.some((number) => holders.includes(places[number]?.owner ?? ""));
  return isLong ? "an unconfirmed grant lasts longer than its short lease" : undefined;
}

/** Checks each place that this script took away, and updates the record in `next`. */
export function accountOfPlaces(
  world: Subject,
  before: LockState,
  next: LockState,
  request: Request,
  outcome: Outcome,
  listening: readonly string[],
): string | undefined {
  const broken = lostWrongly(world, before, request, outcome, listening);
  if (broken !== undefined) return broken;
  const { places, setting } = world;
  const [number, verb] = request;
  const waits = setting.kind.waiters(outcome.held);
  const isPresent = places[number]?.protocol === 1;
  if (isPresent && looksForGone(world, before, verb)) {
    const isTooMuch = pay(world, before, next, waits, listening);
    if (isTooMuch) return "L6: a client that does not confirm costs a waiter more than one short lease";
    next.gone = [];
  }
  next.paid = next.paid.filter(([waiter]) => waits.includes(places[waiter]?.owner ?? ""));
  next.due = dueAfter(world, before, next.due, request, outcome);
  if (setting.protocols?.includes(0) === true) forget(world, before, next, verb, isPresent);
  return undefined;
}

/** Whether a live waiter has lost its place although its client confirmed, or without a message. */
function lostWrongly(
  world: Subject,
  before: LockState,
  [number, verb]: Request,
  { told, held }: Outcome,
  listening: readonly string[],
): string | undefined {
  const { places } = world;
  const { kind } = world.setting;
  const { owner: caller, protocol } = places[number] as Place;
  const stays = [...kind.waiters(held), ...kind.holders(held).keys(), caller];
  for (const owner of kind.waiters(before.held)) {
    const [client, shown] = owner.split("/");
    const inbox = `${INBOX}${client}`;
    if (stays.includes(owner) || !listening.includes(inbox)) continue;
    const isRight = protocol === 1 && mayLose(world, before, owner, verb);
    if (!isRight) return "a client loses a place in the queue without cause";
    const isTold = told.some(([channel, message]) => channel === inbox && message === `~${shown}`);
    if (!isTold) return "a client loses a place in the queue and is not notified";
  }
  return undefined;
}

/** The claims with an unconfirmed grant after a script. */
function dueAfter(
  { places, setting: { kind } }: Subject,
  before: LockState,
  due: readonly number[],
  [number, verb]: Request,
  { reply, held }: Outcome,
): number[] {
  const { owner: caller, protocol } = places[number] as Place;
  const validIn = (of: Held): string[] => {
    const lapsed = kind.lapsed(of, before.t);
    return [...kind.holders(of).keys()].filter((owner) => !lapsed.includes(owner));
  };
  const [had, has] = [validIn(before.held), validIn(held)];
  const isExtended = typeof reply === "number" ? reply === 1 : reply[0] === 1 && reply.length === 1;
  const isConfirmed = verb === "acquire" || verb === "reweigh" || isExtended;
  return places.flatMap(({ owner, protocol: own }, of) => {
    if (!has.includes(owner)) return [];
    // Scripts of protocol 0 grant full leases, and clients of protocol 0 get them.
    if (!had.includes(owner)) return owner !== caller && protocol === 1 && own === 1 ? [of] : [];
    return due.includes(of) && !(owner === caller && isConfirmed) ? [of] : [];
  });
}

/** A script of protocol 0 grants without checking `handed`, so the next script of the present build may find nothing. */
function forget(world: Subject, before: LockState, next: LockState, verb: Verb, isPresent: boolean): void {
  const handed = next.held.find(([key]) => key === HANDED)?.[2];
  const isMutex = next.held.some(([key]) => key === "l") || handed !== undefined;
  if (isMutex) next.gone = next.gone.filter((client) => LETTERS[client] === handed);
  else if (!isPresent && looksForGone(world, before, verb)) next.gone = [];
}

/** Counts one more unconfirmed grant for each live waiter. @returns whether a client has exceeded its limit */
function pay(
  { places, setting: { kind } }: Subject,
  before: LockState,
  next: LockState,
  waits: readonly string[],
  listening: readonly string[],
): boolean {
  const waited = kind.waiters(before.held);
  for (const client of before.gone) {
    for (const [number, { owner, client: own }] of places.entries()) {
      const isThere = listening.includes(`${INBOX}${owner.split("/")[0]}`);
      if (own === client || !waited.includes(owner) || !isThere) continue;
      if (next.paid.some(([waiter, of]) => waiter === number && of === client)) return true;
      if (waits.includes(owner)) next.paid.push([number, client]);
    }
  }
  return false;
}
