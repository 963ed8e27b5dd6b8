/** Claims of a lock whose server may be replaced in a failover: requests, replies, and how time passes on both sides. */
import { HAND_OFF_TICKS, LEASE_TICKS, TICK_MS } from "./canonical.js";
import { afterTick, type Held } from "./server.js";

/** The requests, and the message of a server that hands the lock over. */
export type Verb = "acquire" | "extend" | "reclaim" | "release" | "leave" | "grant";
/** `age` is in ticks since it was sent; `more` depends on the world. */
export type Message = [claim: number, verb: Verb, age: number, code: number, ...more: number[]];

/** One claim. */
export interface ClaimState {
  ph: "idle" | "ask" | "held" | "rel" | "end";
  call: 0 | 1;
  tok: number;
  age: number;
  /** The highest token of any claim when this one began to ask. */
  floor: number;
  /** Whether it was granted by message and is not confirmed. `age` is then increased, so that it ends in time. */
  pv: 0 | 1;
}

/** The client of a claim, and the claim's id on the server. */
export interface Owner {
  readonly client: number;
  readonly owner: string;
}

/** The common state of worlds with such claims. */
export interface ClaimsState {
  claims: ClaimState[];
  requests: Message[];
  replies: Message[];
  highest: number;
  left: { renewals: number };
}

/** Adds a step: its label, whether it is a fault, and its change, which returns a string if it violates something. */
export type Add<State> = (label: string, isFault: boolean, change: (next: State) => unknown) => void;

/** The key of the marker for a whole server. */
export const MARKER = "m";
/** The names of the clients. */
export const LETTERS = "ABC";

/** The highest age that has to be distinguished. */
const OLD = LEASE_TICKS;

/** The name of a claim in a trace. */
export function nameOf(owners: readonly Owner[], number: number): string {
  const { client } = owners[number] as Owner;
  const nth = owners.slice(0, number).filter((other) => other.client === client).length;
  return `${LETTERS[client]}${nth + 1}`;
}

/** Checks S2 for what the holders rely on. */
export function heldTwice({ claims }: ClaimsState): string | undefined {
  const holders = claims.filter(({ ph, age }) => ph === "held" && age < LEASE_TICKS);
  return holders.length > 1 ? "S2: two holders at once" : undefined;
}

/** The steps of callers: they begin, ask if their client may, renew and release. */
export function addClaims<State extends ClaimsState>(
  state: State,
  owners: readonly Owner[],
  mayAsk: (client: number) => boolean,
  add: Add<State>,
  send: (next: State, number: number, verb: Verb) => void,
): void {
  for (const [number, claim] of state.claims.entries()) {
    const name = nameOf(owners, number);
    const { client } = owners[number] as Owner;
    const isNext = owners.every((other, i) => other.client !== client || i >= number || state.claims[i]?.ph === "end");
    if (claim.ph === "idle" && isNext) {
      add(`${name} begins`, false, (next) => {
        const begun = next.claims[number] as ClaimState;
        begun.ph = "ask";
        begun.floor = next.highest;
      });
    }
    if (claim.ph === "held" && claim.age >= LEASE_TICKS) {
      // A renewal may still be in flight.
      add(`${name} finds its lease over, and leaves`, false, (next) => {
        (next.claims[number] as ClaimState).ph = "rel";
        send(next, number, "leave");
      });
      continue;
    }
    if (claim.call === 1) continue;
    if (claim.ph === "ask" && mayAsk(client)) add(`${name} asks`, false, (next) => send(next, number, "acquire"));
    if (claim.ph === "held") {
      if (claim.pv === 1) add(`${name} confirms`, false, (next) => send(next, number, "extend"));
      if (state.left.renewals > 0 && claim.pv === 0) {
        add(`${name} renews`, true, (next) => {
          next.left.renewals -= 1;
          send(next, number, "extend");
        });
      }
      add(`${name} releases`, false, (next) => {
        (next.claims[number] as ClaimState).ph = "rel";
        send(next, number, "release");
      });
    }
  }
}

/** Sends a request. */
export function sent(next: ClaimsState, number: number, verb: Verb, ...more: number[]): void {
  const claim = next.claims[number] as ClaimState;
  claim.call = 1;
  next.requests.push([number, verb, 0, claim.tok, ...more]);
}

/** A claim receives a reply or a message. @returns what it violates, if anything */
export function hear(next: ClaimsState, [number, verb, age, code]: Message, putsBack: boolean): string | undefined {
  const claim = next.claims[number] as ClaimState;
  const isOfEnd = verb === "release" || verb === "leave";
  // The reply to a renewal of a lease that has ended meanwhile.
  if ((claim.ph === "rel") !== isOfEnd) return undefined;
  claim.call = 0;
  if (isOfEnd) {
    claim.ph = "end";
  } else if (verb === "acquire" || verb === "grant") {
    // A reply that arrives after the lease that it granted has ended is ignored.
    const isShort = verb === "grant";
    if (code < 0 || age >= (isShort ? HAND_OFF_TICKS : LEASE_TICKS) || claim.ph !== "ask") return undefined;
    claim.ph = "held";
    claim.tok = code;
    claim.age = isShort ? age + LEASE_TICKS - HAND_OFF_TICKS : age;
    claim.pv = isShort ? 1 : 0;
    if (code <= claim.floor) return "F2: a token is not higher than one that was seen before";
    next.highest = Math.max(next.highest, code);
  } else if (claim.ph === "held" && claim.age < LEASE_TICKS) {
    if (code === 1) Object.assign(claim, { age: Math.min(claim.age, age), pv: 0 });
    else if (verb === "extend" && putsBack) sent(next, number, "reclaim");
    else claim.ph = "end";
  }
  return undefined;
}

/** A client stops waiting for a reply. */
export function giveUp(next: ClaimsState, [number, verb]: Message): void {
  const claim = next.claims[number] as ClaimState;
  const isOfEnd = verb === "release" || verb === "leave";
  if ((claim.ph === "rel") !== isOfEnd) return;
  claim.call = 0;
  if (isOfEnd) claim.ph = "end";
}

/** A copy that can be changed. */
export function copyOfClaims<State extends ClaimsState>(state: State): State {
  return {
    ...state,
    claims: state.claims.map((claim) => ({ ...claim })),
    requests: state.requests.map((request) => [...request]),
    replies: state.replies.map((reply) => [...reply]),
    left: { ...state.left },
  };
}

/** A tick passes for claims and messages. */
export function claimsAge({ claims, requests, replies }: ClaimsState): void {
  for (const claim of claims) if (claim.ph === "held") claim.age = Math.min(OLD, claim.age + 1);
  for (const message of [...requests, ...replies]) message[2] = Math.min(OLD, message[2] + 1);
}

/** The clock after the next tick. */
export function nextTick(us: number): number {
  return us + TICK_MS * 1_000 - (us % (TICK_MS * 1_000));
}

/** The content of a server after the next tick. */
export function heldAfterTick(held: Held): Held {
  return shifted(afterTick(held, TICK_MS), -TICK_MS);
}

/** Shifts the instants in the marker, which are stored relative to now. Those long ago are all the same. */
export function shifted(held: Held, byMs: number): Held {
  return held.map(([key, type, value, left]) => {
    if (key !== MARKER || typeof value === "string") return [key, type, value, left] as const;
    const moved = value.map((word, i) => {
      const field = value[i - 1];
      if (i % 2 === 0 || (field !== "sinceMs" && field !== "periodMs")) return word;
      const ms = Number(word) + byMs;
      return String(byMs > 0 ? ms : field === "periodMs" ? 0 : Math.max(ms, -10 * TICK_MS));
    });
    return [key, type, moved, left] as const;
  });
}
