/**
 * Leases on a quorum, with time: the mutual exclusion that Redlock guarantees while clocks run at about the same
 * rate.
 *
 * Time advances in ticks, for all processes at the same time. The clock of a server may gain a tick relative to that
 * of its clients, which is the drift that clients allow for. Requests, replies and releases arrive at any time, or
 * never. A server may restart without its memory. The servers run the production scripts; the client is written here,
 * and counts votes with the production function. Tokens are not modeled: a server's number is always the same.
 */
import { tally } from "holdfast/simulation";
import type { Step, World } from "./explore.js";
import { type Order, ordersOf, type PlacedAttempt, placesOf } from "./quorum-places.js";
import type { Held, Outcome, Server } from "./server.js";
import {
  copyOfTimed,
  parseTimed,
  type TimedAttempt,
  type TimedLink,
  type TimedSeat,
  type TimedState,
  timedText,
} from "./timed-state.js";

/** The settings of a world of leases. */
export interface TimedSetting {
  /** The number of consecutive attempts of each client. */
  readonly clients: readonly number[];
  readonly servers: number;
  readonly restarts: number;
  /** The number of servers whose clock may gain a tick; clients allow for one tick. */
  readonly fast: number;
}

/** Rules of the client that can be switched off. */
export type TimedRule =
  | "count-from-asking"
  | "read-the-clock-again"
  | "subtract-drift"
  | "look-at-the-clock"
  | "more-than-half"
  | "keep-out";

/** The length of a lease on a server, in ticks. */
const LEASE = 3;
/** The drift that clients subtract from it. */
const DRIFT = 1;
const TICK_MS = 1_000;
const FENCE_MS = 600_000;
const SEATS = "XYZUV";

type Add = (label: string, isFault: boolean, change: (next: TimedState) => void) => void;

/** The world of timed leases. */
export class TimedWorld implements World<TimedState> {
  readonly initial: TimedState;
  readonly #server: Server;
  readonly #off: ReadonlySet<TimedRule>;
  readonly #places: readonly PlacedAttempt[];
  readonly #orders: readonly Order[];

  constructor({ clients, servers, restarts, fast }: TimedSetting, server: Server, off: readonly TimedRule[] = []) {
    this.#server = server;
    this.#off = new Set(off);
    this.#places = placesOf(clients);
    this.#orders = ordersOf(clients, this.#places);
    this.initial = {
      attempts: this.#places.map(() => ({ ph: "idle", age: 0 })),
      seats: [...Array(servers).keys()].map((at) => ({
        holder: undefined,
        left: 0,
        out: 0,
        gain: at < fast ? DRIFT : 0,
        links: this.#places.map(() => ({ asks: 0, grants: 0, releases: 0 })),
      })),
      restarts,
    };
  }

  text(state: TimedState): string {
    return timedText(state, this.#orders);
  }

  parse(text: string): TimedState {
    return parseTimed(text);
  }

  /** No client has to finish. */
  isGood(): boolean {
    return true;
  }

  violation({ attempts }: TimedState): string | undefined {
    return attempts.filter(({ ph }) => ph === "held").length > 1 ? "S2: two holders at once" : undefined;
  }

  async steps(state: TimedState): Promise<readonly Step<TimedState>[]> {
    const steps: Step<TimedState>[] = [];
    const add: Add = (label, isFault, change) => {
      const next = copyOfTimed(state);
      change(next);
      steps.push({ label, next, isFault, violation: undefined });
    };
    // A violation needs two holders, so with fewer than two attempts left there is nothing to find.
    if (state.attempts.filter(({ ph }) => ph !== "over").length < 2) return steps;
    add("a tick passes", false, (next) => this.#tick(next));
    for (const number of state.attempts.keys()) this.#addClientSteps(state, number, add);
    for (const [at, seat] of state.seats.entries()) {
      this.#addFaults(state, at, add);
      if (seat.out > 0) continue;
      for (const number of seat.links.keys()) await this.#addArrivals(seat, at, number, add);
    }
    return steps;
  }

  /** How long a holder may rely on its lease, from the time it counts from. */
  get #validity(): number {
    return this.#off.has("subtract-drift") ? LEASE : LEASE - DRIFT;
  }

  /** Whether the client notices a majority that replies too late. A client that counts from the replies cannot. */
  get #knowsWhenLate(): boolean {
    return !this.#off.has("read-the-clock-again") && !this.#off.has("count-from-asking");
  }

  #tick(next: TimedState): void {
    for (const [number, attempt] of next.attempts.entries()) {
      if (attempt.ph === "ask" || attempt.ph === "held") attempt.age = Math.min(attempt.age + 1, LEASE);
      if (attempt.age < this.#validity) continue;
      const isLast = this.#places[number]?.isLast === true;
      if (attempt.ph === "held" && !this.#off.has("look-at-the-clock")) over(next, number, isLast);
      if (attempt.ph === "ask" && isLast && this.#knowsWhenLate) over(next, number, isLast);
    }
    for (const seat of next.seats) pass(seat);
  }

  #addClientSteps(state: TimedState, number: number, add: Add): void {
    const { ph, age } = state.attempts[number] as TimedAttempt;
    const { name, isFirst, isLast } = this.#places[number] as PlacedAttempt;
    if (ph === "idle" && (isFirst || state.attempts[number - 1]?.ph === "over")) {
      add(`${name} asks`, false, (next) => {
        next.attempts[number] = { ph: "ask", age: 0 };
        for (const { links } of next.seats) (links[number] as TimedLink).asks = 1;
      });
    }
    if (ph === "ask") {
      const granted = state.seats.filter(({ links }) => links[number]?.grants === 1).length;
      const isMajority = this.#off.has("more-than-half")
        ? granted * 2 >= state.seats.length - 1
        : tally(granted, 0, state.seats.length) === "granted";
      const isLate = age >= this.#validity && this.#knowsWhenLate;
      if (isMajority && !isLate) {
        add(`${name} hears of a majority: granted`, false, (next) => {
          next.attempts[number] = { ph: "held", age: this.#off.has("count-from-asking") ? 0 : age };
          forgetAnswers(next, number);
        });
      }
    }
    // If a client gives up its last attempt, it can only make room for others before its lease ends.
    if (ph === "ask" && !isLast) add(`${name} gives up, and releases`, false, (next) => release(next, number));
    if (ph === "held" && !isLast) add(`${name} releases`, false, (next) => release(next, number));
  }

  #addFaults(state: TimedState, at: number, add: Add): void {
    const { left, out, gain } = state.seats[at] as TimedSeat;
    const name = SEATS[at];
    if (gain > 0 && (left > 0 || out > 0)) {
      add(`the clock of ${name} gains a tick`, false, (next) => {
        const seat = next.seats[at] as TimedSeat;
        seat.gain -= 1;
        pass(seat);
      });
    }
    if (state.restarts > 0) {
      const keptOut = this.#off.has("keep-out") ? "" : ", and is kept out";
      add(`${name} restarts without its memory${keptOut}`, true, (next) => {
        next.restarts -= 1;
        const seat = next.seats[at] as TimedSeat;
        Object.assign(seat, { holder: undefined, left: 0, out: this.#off.has("keep-out") ? 0 : LEASE });
      });
    }
  }

  async #addArrivals(seat: TimedSeat, at: number, number: number, add: Add): Promise<void> {
    const { asks, releases } = seat.links[number] as TimedLink;
    const { name } = this.#places[number] as PlacedAttempt;
    const on = `on ${SEATS[at]}`;
    if (asks > 0) {
      const outcome = await this.#run(seat, "redlock/acquire", [name, LEASE * TICK_MS]);
      const isGranted = (outcome.reply as readonly number[])[0] === 0;
      add(`the request of ${name} ${on} is ${isGranted ? "granted" : "refused"}`, false, (next) => {
        const link = this.#take(next, at, number, outcome);
        link.asks -= 1;
        if (isGranted && next.attempts[number]?.ph === "ask") link.grants = 1;
      });
    }
    if (releases > 0) {
      const outcome = await this.#run(seat, "redlock/release", [name, "wake"]);
      add(`the release of ${name} comes ${on}`, false, (next) => {
        this.#take(next, at, number, outcome).releases -= 1;
      });
    }
  }

  #take(next: TimedState, at: number, number: number, { held }: Outcome): TimedLink {
    const seat = next.seats[at] as TimedSeat;
    const lock = held.find(([key]) => key === "lock");
    seat.holder = lock === undefined ? undefined : this.#places.findIndex(({ name }) => name === lock[2]);
    seat.left = lock === undefined ? 0 : Math.round(lock[3] / TICK_MS);
    return seat.links[number] as TimedLink;
  }

  #run({ holder, left }: TimedSeat, script: string, args: readonly (string | number)[]): Promise<Outcome> {
    const held: Held = [
      ["fence", "string", "1", FENCE_MS],
      ...(holder === undefined ? [] : [["lock", "string", this.#places[holder]?.name ?? "", left * TICK_MS] as const]),
    ];
    const keys = script === "redlock/release" ? ["lock"] : ["lock", "fence"];
    return this.#server.run(held, 0, [], { script, keys, args });
  }
}

function pass(seat: TimedSeat): void {
  seat.left = Math.max(0, seat.left - 1);
  seat.out = Math.max(0, seat.out - 1);
  if (seat.left === 0) seat.holder = undefined;
}

/** Removes what was sent for the last attempt of a client, because it could only keep others out. */
function over(next: TimedState, number: number, isLast: boolean): void {
  next.attempts[number] = { ph: "over", age: 0 };
  for (const { links } of next.seats) {
    const link = links[number] as TimedLink;
    link.grants = 0;
    if (isLast) link.asks = 0;
  }
}

function forgetAnswers(next: TimedState, number: number): void {
  for (const { links } of next.seats) (links[number] as TimedLink).grants = 0;
}

function release(next: TimedState, number: number): void {
  over(next, number, false);
  for (const { links } of next.seats) (links[number] as TimedLink).releases = 1;
}
