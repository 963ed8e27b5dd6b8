/**
 * Tokens on a quorum: independent servers, clients that ask all of them, and a network in which every request and
 * reply is a separate message that arrives at any time, or never.
 *
 * No time is assumed: a lease may end at any moment on any server. The servers run the production scripts, and the
 * clients decide with the production function; this file only defines the possible orders of events. A lost message
 * is one that never arrives, so it needs no step. Refusals need no step either, because a client may give up at any
 * time. The resource is not modeled: E1 only needs F1 of tokens.
 */
import { type AcquireVote, confirmed, decide, type Unconfirmed } from "holdfast/simulation";
import type { Step, World } from "./explore.js";
import { type Order, ordersOf, type PlacedAttempt, placesOf } from "./quorum-places.js";
import type { Held, Outcome, Server } from "./server.js";
import {
  type Attempt,
  copyOfTokens,
  highest,
  type Link,
  noLink,
  parseTokens,
  type Seat,
  type TokenBudget,
  type TokenState,
  tokenText,
} from "./token-state.js";

/** The settings of a world of tokens. */
export interface TokenSetting {
  /** The number of consecutive attempts of each client. */
  readonly clients: readonly number[];
  /** The possible initial numbers of the servers. */
  readonly counters: readonly (readonly number[])[];
  readonly budget: TokenBudget;
  /** Whether a write-back is accepted even if its attempt no longer holds, as with a script that does not check. */
  readonly keepsWrites?: boolean;
  /**
   * Whether a granted client also raises the other servers that granted with a lower number, so that the next round
   * finds equal numbers.
   */
  readonly levels?: boolean;
}

/** Rules of the client that can be switched off. */
export type TokenRule = "write-back" | "decided-set" | "majority" | "fresh-owner" | "fast-path-exact";

const SEATS = "XYZUV";
const LOCK = "lock";
const FENCE = "fence";
const LEASE_MS = 1_500;
const FENCE_MS = 600_000;
const CHANNEL = "wake";

type Add = (label: string, isFault: boolean, change: (next: TokenState) => string | undefined) => void;

/** The world of tokens. */
export class TokenWorld implements World<TokenState> {
  readonly initial: TokenState;
  readonly #setting: TokenSetting;
  readonly #server: Server;
  readonly #off: ReadonlySet<TokenRule>;
  readonly #places: readonly PlacedAttempt[];
  readonly #orders: readonly Order[];

  constructor(setting: TokenSetting, server: Server, off: readonly TokenRule[] = []) {
    this.#setting = setting;
    this.#server = server;
    this.#off = new Set(off);
    const { clients, counters, budget } = setting;
    this.#places = placesOf(clients);
    this.#orders = ordersOf(clients, this.#places);
    this.initial = {
      hasBegun: false,
      attempts: this.#places.map(() => ({ ph: "idle", token: 0, floor: 0 })),
      seats: (counters[0] ?? []).map(() => ({
        holder: undefined,
        number: undefined,
        links: this.#places.map(noLink),
      })),
      budget,
    };
  }

  text(state: TokenState): string {
    return tokenText(state, this.#orders);
  }

  parse(text: string): TokenState {
    return parseTokens(text);
  }

  /** No client needs to finish: contenders may starve each other, and this says nothing about liveness. */
  isGood(): boolean {
    return true;
  }

  violation(): undefined {}

  async steps(state: TokenState): Promise<readonly Step<TokenState>[]> {
    const steps: Step<TokenState>[] = [];
    const add: Add = (label, isFault, change) => {
      const next = copyOfTokens(state);
      const violation = change(next);
      this.#dropDead(next);
      steps.push({ label, next, isFault, violation });
    };
    if (!state.hasBegun) {
      this.#addBeginnings(add);
      return steps;
    }
    // There are no further grants.
    if (!state.attempts.some((attempt) => isUnderWay(attempt, "idle"))) return steps;
    for (const number of state.attempts.keys()) this.#addClientSteps(state, number, add);
    for (const [at, seat] of state.seats.entries()) {
      this.#addFaults(state, at, add);
      for (const number of seat.links.keys()) await this.#addArrivals(state, at, number, add);
    }
    return steps;
  }

  #addBeginnings(add: Add): void {
    for (const counters of this.#setting.counters) {
      add(`the servers stand at ${counters.join(", ")}`, false, (next) => {
        next.hasBegun = true;
        for (const [at, seat] of next.seats.entries()) seat.number = counters[at];
        return undefined;
      });
    }
  }

  #addClientSteps(state: TokenState, number: number, add: Add): void {
    const { ph } = state.attempts[number] as Attempt;
    const name = this.#name(number);
    const { isFirst, isLast } = this.#places[number] as PlacedAttempt;
    const isNext = isFirst || !isUnderWay(state.attempts[number - 1], "idle");
    if (ph === "idle" && isNext) {
      add(`${name} asks`, false, (next) => {
        const attempt = next.attempts[number] as Attempt;
        attempt.ph = "ask";
        attempt.floor = Math.max(...next.attempts.map(({ ph: phase, token }) => (phase === "held" ? token : 0)));
        for (const { links } of next.seats) (links[number] as Link).asks = 1;
        return undefined;
      });
    }
    if (ph !== "ask" && ph !== "conf") return;
    // Giving up the last attempt is the same as never receiving another reply.
    if (!isLast) add(`${name} gives up`, false, (next) => end(next, number, "gone"));
    if (ph === "ask") this.#addDecisions(state, number, add);
    else if (this.#isConfirmed(state, number))
      add(`${name} hears of a majority`, false, (next) =>
        grant(next, number, (next.attempts[number] as Attempt).token),
      );
  }

  /** An attempt may decide with any subset of the replies sent so far; later ones are ignored. */
  #addDecisions(state: TokenState, number: number, add: Add): void {
    const name = this.#name(number);
    const sent = state.seats.map(({ links }) => (links[number] as Link).replies);
    for (const heard of choices(sent)) {
      const decision = this.#decide(heard);
      const by = heard.flatMap((token, at) => (token === undefined ? [] : [`${token} of ${SEATS[at]}`])).join(", ");
      if (decision.outcome === "granted") {
        add(`${name} hears ${by}: granted ${decision.token}`, false, (next) =>
          this.#grant(next, number, decision.token),
        );
      } else if (decision.outcome === "confirm") {
        add(`${name} hears ${by}: writes ${decision.token} back`, false, (next) => {
          this.#writeBack(next, number, decision);
          return undefined;
        });
      }
    }
  }

  #writeBack(next: TokenState, number: number, { token, standing, behind }: Unconfirmed): void {
    Object.assign(next.attempts[number] as Attempt, { ph: "conf", token });
    for (const [at, { links }] of next.seats.entries()) {
      const link = links[number] as Link;
      const of = behind.find(({ server }) => server === at);
      link.part = standing.includes(at) ? "standing" : of === undefined ? "none" : "behind";
      if (of !== undefined) link.writes = [of.reported, token, 1];
      if (link.part !== "none" || !this.#hearsLate) link.replies = [];
    }
  }

  #isConfirmed(state: TokenState, number: number): boolean {
    const { token } = state.attempts[number] as Attempt;
    const parts = state.seats.map(({ links }) => links[number] as Link);
    const isStanding = ({ part, replies }: Link): boolean =>
      // Without the rule, it counts servers at or above the token, whenever they granted.
      part === "standing" || (this.#off.has("decided-set") && replies.some((reply) => reply >= token));
    const unconfirmed: Unconfirmed = {
      outcome: "confirm",
      token,
      standing: parts.flatMap((link, server) => (isStanding(link) ? [server] : [])),
      behind: parts.flatMap(({ part, writes }, server) =>
        part === "behind" || part === "raised" ? [{ server, reported: writes?.[0] ?? 0 }] : [],
      ),
    };
    const answers = parts.map(({ part }) => (part === "raised" ? "confirmed" : "pending"));
    return confirmed(unconfirmed, answers) === "granted";
  }

  #addFaults(state: TokenState, at: number, add: Add): void {
    const { holder } = state.seats[at] as Seat;
    if (holder !== undefined && isUnderWay(state.attempts[holder])) {
      add(`the lease on ${SEATS[at]} ends`, false, (next) => {
        (next.seats[at] as Seat).holder = undefined;
        return undefined;
      });
    }
    if (state.budget.losses > 0) {
      add(`${SEATS[at]} forgets everything`, true, (next) => {
        next.budget.losses -= 1;
        Object.assign(next.seats[at] as Seat, { holder: undefined, number: undefined });
        return undefined;
      });
    }
  }

  async #addArrivals(state: TokenState, at: number, number: number, add: Add): Promise<void> {
    const seat = state.seats[at] as Seat;
    const link = seat.links[number] as Link;
    const { ph } = state.attempts[number] as Attempt;
    const name = this.#name(number);
    const on = `on ${SEATS[at]}`;
    const owner = this.#owner(number);

    if (link.asks > 0) {
      const outcome = await this.#run(state, seat, "redlock/acquire", [owner, LEASE_MS]);
      const [refused, token] = outcome.reply as readonly [number, number];
      for (const isCopied of copyOrNot(state.budget)) {
        const shown = `${refused === 0 ? `is granted ${token}` : "is refused"}${again(isCopied)}`;
        add(`the request of ${name} ${on} ${shown}`, isCopied, (next) => {
          const nextLink = this.#take(next, at, number, outcome);
          if (isCopied) next.budget.copies -= 1;
          else nextLink.asks -= 1;
          const isHeard = ph === "ask" || (ph === "conf" && link.part === "none" && this.#hearsLate);
          if (refused === 0 && isHeard && !nextLink.replies.includes(token))
            nextLink.replies = [...nextLink.replies, token].sort((one, other) => one - other);
          if (refused === 0 && ph === "held") this.#level(next, number, nextLink, token);
          return undefined;
        });
      }
    }
    if (link.writes !== undefined) {
      const [reported, token, copies] = link.writes;
      const outcome = await this.#run(state, seat, "redlock/confirm", [owner, reported, token, LEASE_MS]);
      for (const isCopied of copyOrNot(state.budget)) {
        const shown = `${outcome.reply === 1 ? "is confirmed" : "is refused"}${again(isCopied)}`;
        add(`the ${token} that ${name} writes back ${on} ${shown}`, isCopied, (next) => {
          const nextLink = this.#take(next, at, number, outcome);
          if (isCopied) next.budget.copies -= 1;
          else nextLink.writes = copies > 1 ? [reported, token, copies - 1] : undefined;
          if (outcome.reply === 1 && nextLink.part === "behind") nextLink.part = "raised";
          return undefined;
        });
      }
    }
    if (seat.holder === number && !isUnderWay(state.attempts[number])) {
      const outcome = await this.#run(state, seat, "redlock/release", [owner, CHANNEL]);
      add(`the lease of ${name} ${on} ends, or its release comes`, false, (next) => {
        this.#take(next, at, number, outcome);
        return undefined;
      });
    }
  }

  /** Whether replies that arrive after the decision are processed. */
  get #hearsLate(): boolean {
    return this.#setting.levels === true || this.#off.has("decided-set");
  }

  #grant(next: TokenState, number: number, token: number): string | undefined {
    const replies = next.seats.map(({ links }) => (links[number] as Link).replies);
    const violation = grant(next, number, token);
    for (const [at, { links }] of next.seats.entries())
      for (const reply of replies[at] ?? []) this.#level(next, number, links[number] as Link, reply);
    return violation;
  }

  #level(next: TokenState, number: number, link: Link, reported: number): void {
    const { token } = next.attempts[number] as Attempt;
    if (this.#setting.levels === true && reported < token) link.writes ??= [reported, token, 1];
  }

  #decide(heard: readonly (number | undefined)[]): ReturnType<typeof decide> {
    const answers = heard.map(
      (token): AcquireVote => (token === undefined ? { outcome: "pending" } : { outcome: "granted", token }),
    );
    const granted = answers.filter(({ outcome }) => outcome === "granted");
    // Without the rule, the servers that have replied are treated as all servers.
    if (this.#off.has("majority") && granted.length > 0) return decide(granted);
    const decision = decide(answers);
    if (decision.outcome !== "confirm") return decision;
    const { token, behind } = decision;
    if (this.#off.has("write-back")) return { outcome: "granted", token };
    const isAgreed = behind.some(
      ({ reported }) => behind.filter((other) => other.reported === reported).length * 2 > answers.length,
    );
    if (this.#off.has("fast-path-exact") && isAgreed) return { outcome: "granted", token };
    return decision;
  }

  /** Stores the result of a script in the state. */
  #take(next: TokenState, at: number, number: number, { held }: Outcome): Link {
    const seat = next.seats[at] as Seat;
    const values = new Map(held.map(([key, , value]) => [key, value]));
    const holder = values.get(LOCK);
    const fence = values.get(FENCE);
    seat.holder = holder === undefined ? undefined : this.#attemptOf(String(holder));
    seat.number = fence === undefined ? undefined : Number(fence);
    return seat.links[number] as Link;
  }

  /**
   * Removes confirmations that can no longer succeed, because the attempt does not hold there and cannot hold there
   * again.
   */
  #dropDead(next: TokenState): void {
    if (this.#setting.keepsWrites === true) return;
    for (const { holder, links } of next.seats) {
      for (const [number, link] of links.entries()) {
        const isOwner = holder !== undefined && this.#owner(holder) === this.#owner(number);
        if (!isOwner && link.asks === 0) link.writes = undefined;
        if (link.part === "behind" && link.writes === undefined) link.part = "none";
      }
    }
  }

  #run(state: TokenState, seat: Seat, script: string, args: readonly (string | number)[]): Promise<Outcome> {
    const { holder, number } = seat;
    const held: Held = [
      ...(number === undefined ? [] : [[FENCE, "string", String(number), FENCE_MS] as const]),
      ...(holder === undefined ? [] : [[LOCK, "string", this.#owner(holder), LEASE_MS] as const]),
    ];
    // Only a server that has lost its memory uses its clock, which is then later than everything before.
    const nowUs = number === undefined ? highest(state) + 1 : 0;
    const keys = script === "redlock/release" ? [LOCK] : [LOCK, FENCE];
    return this.#server.run(held, nowUs, [], { script, keys, args });
  }

  #name(number: number): string {
    return this.#places[number]?.name ?? "";
  }

  #owner(number: number): string {
    return this.#off.has("fresh-owner") ? `${this.#name(number)[0]}0` : this.#name(number);
  }

  #attemptOf(owner: string): number {
    return this.#places.findIndex(({ name }) => name === owner);
  }
}

/** Ends an attempt with a grant. @returns what is wrong with the grant, if anything */
function grant(next: TokenState, number: number, token: number): string | undefined {
  const { floor } = next.attempts[number] as Attempt;
  const isKnown = next.attempts.some((other) => other.ph === "held" && other.token === token);
  end(next, number, "held", token);
  if (isKnown) return `F1: two grants have the token ${token}`;
  if (token <= floor) return `F2: ${token} is granted after ${floor} was`;
  return undefined;
}

/** Ends an attempt. Its replies no longer matter, but its requests still arrive. */
function end(next: TokenState, number: number, ph: "held" | "gone", token = 0): undefined {
  next.attempts[number] = { ph, token, floor: 0 };
  for (const { links } of next.seats) {
    const { asks, writes } = links[number] as Link;
    links[number] = { ...noLink(), asks, writes };
  }
}

function isUnderWay(attempt: Attempt | undefined, orIdle?: "idle"): boolean {
  return attempt?.ph === "ask" || attempt?.ph === "conf" || (orIdle !== undefined && attempt?.ph === orIdle);
}

/** All ways to choose one or no element of each list. */
function choices(lists: readonly (readonly number[])[]): (number | undefined)[][] {
  return lists.reduce<(number | undefined)[][]>(
    (taken, list) => taken.flatMap((rest) => [undefined, ...list].map((item) => [...rest, item])),
    [[]],
  );
}

function copyOrNot({ copies }: TokenBudget): readonly boolean[] {
  return copies > 0 ? [false, true] : [false];
}

function again(isCopied: boolean): string {
  return isCopied ? ", and will come once more" : "";
}
