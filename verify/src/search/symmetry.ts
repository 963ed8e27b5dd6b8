/**
 * Maps states that differ only by an exchange of alike clients to the same state.
 *
 * The scripts never compare client names, so such states have the same future except for names. Alike clients are
 * sorted by what they know and by their positions on the server. If these are equal, any order is correct.
 */

import { HANDED } from "./lock-kinds.js";
import { LETTERS } from "./lock-setting.js";
import { byText, type LockState } from "./lock-state.js";
import type { Place } from "./place.js";
import type { Held } from "./server.js";

/** The parts of a world that the mapping needs. */
export interface Symmetric {
  readonly setting: { readonly clients: readonly unknown[] };
  readonly places: readonly Place[];
  areAlike(one: number, other: number): boolean;
}

const OWNER = /[abcd]\/\d+\/1500\/\d+(?:\/;500)?/g;

/** `state`, or a copy of it with alike clients in sorted order. */
export function alikeFirst(world: Symmetric, state: LockState): LockState {
  const { places } = world;
  const order = [...world.setting.clients.keys()];
  const signs = order.map((client) => signOf(places, state, client));
  for (let from = 0; from < order.length; ) {
    let to = from + 1;
    while (to < order.length && world.areAlike(from, to)) to += 1;
    const sorted = order.slice(from, to).sort((a, b) => ((signs[a] ?? "") < (signs[b] ?? "") ? -1 : 1));
    order.splice(from, to - from, ...sorted);
    from = to;
  }
  if (order.every((client, i) => client === i)) return state;
  const numbers = order.flatMap((client) => [...places.keys()].filter((number) => places[number]?.client === client));
  const now = (number: number): number => numbers.indexOf(number);
  const names = new Map(numbers.map((old, number) => [places[old]?.owner ?? "", places[number]?.owner ?? ""]));
  const held = JSON.parse(JSON.stringify(state.held).replace(OWNER, (owner) => names.get(owner) ?? owner)) as Held;
  const group = (clients: readonly number[]): number[] => clients.map((client) => order.indexOf(client)).sort(byNumber);
  const named = (key: string, value: string | readonly string[]): string | readonly string[] => {
    if (key !== HANDED || typeof value !== "string") return typeof value === "string" ? value : byField(value);
    return LETTERS[order.indexOf(LETTERS.indexOf(value))] ?? value;
  };
  return {
    ...state,
    held: held.map(
      ([key, type, value, left]) =>
        [key, type, type === "hash" || type === "string" ? named(key, value) : value, left] as const,
    ),
    claims: numbers.map((old) => state.claims[old]).filter((claim) => claim !== undefined),
    requests: state.requests.map(([number, ...rest]) => [now(number), ...rest]),
    replies: state.replies.map(([number, ...rest]) => [now(number), ...rest]),
    pushes: state.pushes.map(([number, ...rest]) => [now(number), ...rest]),
    dead: group(state.dead),
    deaf: group(state.deaf),
    frozen: group(state.frozen),
    due: state.due.map(now).sort(byNumber),
    gone: group(state.gone),
    paid: state.paid.map(([number, client]) => [now(number), order.indexOf(client)] as [number, number]).sort(byText),
  };
}

function byNumber(left: number, right: number): number {
  return left - right;
}

/** Everything that concerns one client, without its name. The sort key. */
function signOf(places: readonly Place[], state: LockState, client: number): string {
  const own = [...places.keys()].filter((number) => places[number]?.client === client);
  const of = (messages: readonly (readonly unknown[])[]): string[] =>
    messages
      .filter(([number]) => own.includes(number as number))
      .map(([number, ...rest]) => [own.indexOf(number as number), ...rest].join())
      .sort();
  const owners = own.map((number) => places[number]?.owner ?? "");
  const seen = state.held.map(([key, type, value]) =>
    key === HANDED
      ? value === LETTERS[client]
      : typeof value === "string" || type === "hash"
        ? owners.map((owner) => (typeof value === "string" ? value === owner : fieldOf(value, owner)))
        : owners.map((owner) => value.indexOf(owner)),
  );
  return JSON.stringify([
    own.map((number) => state.claims[number]),
    seen,
    of(state.requests),
    of(state.replies),
    of(state.pushes),
    state.dead.includes(client),
    state.deaf.includes(client),
    state.frozen.includes(client),
    state.gone.includes(client),
    own.map((number) => state.due.includes(number)),
    state.paid.map(([number, of]) => [own.indexOf(number), of === client]),
  ]);
}

/** Sorts a hash by field again, because the fields were renamed. */
function byField(value: string | readonly string[]): string | readonly string[] {
  if (typeof value === "string") return value;
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < value.length; i += 2) pairs.push([value[i] ?? "", value[i + 1] ?? ""]);
  return pairs.sort(([left], [right]) => (left < right ? -1 : 1)).flat();
}

function fieldOf(value: readonly string[], owner: string): string {
  const at = value.indexOf(owner);
  return at < 0 ? "" : (value[at + 1] ?? "");
}
