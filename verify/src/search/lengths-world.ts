/**
 * Leases of different lengths on a quorum whose servers may lose their memory.
 *
 * Time advances in ticks, for all processes at the same time. The servers run the production scripts `redlock/acquire`
 * and `server/lineage`, the latter with a simulated INFO. The clients are written here: they tell servers how long their
 * leases are, then ask for them, and ask all servers about one that lost its memory. Requests arrive at any time, or
 * never, and clients are not notified of restarts. A majority never loses its memory at the same time. Releases are left
 * out, because they only make room.
 *
 * The last client has the shortest lease. Every query tells a server a lease of at least that length, so this client has
 * nothing to tell before it asks, and every vote that it gets counts.
 */
import { quorumOf, tally } from "holdfast/simulation";
import type { Step, World } from "./explore.js";
import {
  copyOfLengths,
  type LengthsAttempt,
  type LengthsLink,
  type LengthsSeat,
  type LengthsState,
  lengthsText,
  parseLengths,
} from "./lengths-state.js";
import type { Held, Outcome, Server } from "./server.js";

/** The settings of a world with leases of different lengths. */
export interface LengthsSetting {
  /** The length of each client's lease, in ticks. */
  readonly leases: readonly number[];
  readonly servers: number;
  readonly restarts: number;
}

/** Rules of the client that can be switched off. */
export type LengthsRule = "tell-first" | "count-who-was-told" | "ask-a-majority" | "ask-after-the-restart";

const TICK_MS = 1_000;
const NOW_MS = 1_000_000_000;
const FENCE_MS = 600_000;
const SEATS = "XYZUV";
const LETTERS = "abc";
/** Replies of server/lineage. */
const SETTLED = 0;
const QUIET = 1;

type Add = (label: string, isFault: boolean, change: (next: LengthsState) => void) => void;

/** The result of asking a server about itself. */
interface Standing {
  readonly code: number;
  readonly longest: number;
  readonly seat: Pick<LengthsSeat, "settled" | "heard" | "longest">;
}

/** The world. */
export class LengthsWorld implements World<LengthsState> {
  readonly initial: LengthsState;
  readonly #server: Server;
  readonly #off: ReadonlySet<LengthsRule>;
  readonly #leases: readonly number[];
  readonly #longest: number;
  readonly #majority: number;

  constructor({ leases, servers, restarts }: LengthsSetting, server: Server, off: readonly LengthsRule[] = []) {
    this.#server = server;
    this.#off = new Set(off);
    this.#leases = leases;
    this.#longest = Math.max(...leases);
    this.#majority = quorumOf(servers);
    this.initial = {
      attempts: leases.map(() => ({ ph: "idle", age: 0 })),
      seats: Array.from({ length: servers }, () => ({
        ...{ holder: undefined, left: 0, run: 0, up: 0, settled: 1, heard: 0, longest: Math.min(...leases) },
        ...{ round: -1, said: -1 },
        links: leases.map(() => ({ told: -1, toldBefore: -1, asks: 0, grants: 0 })),
      })),
      restarts,
    };
  }

  text(state: LengthsState): string {
    return lengthsText(state);
  }

  parse(text: string): LengthsState {
    return parseLengths(text);
  }

  /** No client has to finish. */
  isGood(): boolean {
    return true;
  }

  violation({ attempts }: LengthsState): string | undefined {
    return attempts.filter(({ ph }) => ph === "held").length > 1 ? "S2: two holders at once" : undefined;
  }

  async steps(state: LengthsState): Promise<readonly Step<LengthsState>[]> {
    const steps: Step<LengthsState>[] = [];
    const add: Add = (label, isFault, change) => {
      const next = copyOfLengths(state);
      change(next);
      steps.push({ label, next, isFault, violation: undefined });
    };
    // A violation needs two holders.
    if (state.attempts.filter(({ ph }) => ph !== "over").length < 2) return steps;
    add("a tick passes", false, (next) => this.#tick(next));
    for (const number of this.#leases.keys()) this.#addClientSteps(state, number, add);
    for (const [at, seat] of state.seats.entries()) {
      this.#addRestart(state, at, add);
      await this.#addRound(state, at, add);
      for (const number of this.#leases.keys()) {
        const ph = state.attempts[number]?.ph;
        if (ph === "idle" && !this.#isFree(number)) await this.#addTelling(seat, at, number, add);
        if (ph === "ask") await this.#addVote(seat, at, number, add);
      }
    }
    return steps;
  }

  #isFree(number: number): boolean {
    return number === this.#leases.length - 1;
  }

  #tick(next: LengthsState): void {
    for (const [number, attempt] of next.attempts.entries()) {
      if (attempt.ph !== "ask" && attempt.ph !== "held") continue;
      attempt.age += 1;
      if (attempt.age < (this.#leases[number] ?? 0)) continue;
      next.attempts[number] = { ph: "over", age: 0 };
      for (const { links } of next.seats) links[number] = { told: -1, toldBefore: -1, asks: 0, grants: 0 };
    }
    for (const seat of next.seats) {
      seat.left = Math.max(0, seat.left - 1);
      if (seat.left === 0) seat.holder = undefined;
      if (seat.settled === 0) seat.up = Math.min(seat.up + 1, this.#longest);
    }
  }

  #addClientSteps({ attempts, seats }: LengthsState, number: number, add: Add): void {
    const { ph, age } = attempts[number] as LengthsAttempt;
    const name = LETTERS[number];
    const told = seats.filter(({ links }) => (links[number] as LengthsLink).told >= 0).length;
    if (ph === "idle" && (told >= this.#majority || this.#isFree(number) || this.#off.has("tell-first"))) {
      add(`${name} asks for a lease of ${this.#leases[number]}`, false, (next) => {
        next.attempts[number] = { ph: "ask", age: 0 };
        for (const { links } of next.seats) {
          const link = links[number] as LengthsLink;
          Object.assign(link, { asks: 1, toldBefore: link.told });
        }
      });
    }
    const granted = seats.filter(({ links }) => links[number]?.grants === 1).length;
    if (ph === "ask" && tally(granted, 0, seats.length) === "granted") {
      add(`${name} hears of a majority: granted`, false, (next) => {
        next.attempts[number] = { ph: "held", age };
        // Messages still in flight could only keep other clients out.
        for (const { links } of next.seats) links[number] = { told: -1, toldBefore: -1, asks: 0, grants: 0 };
      });
    }
  }

  #addRestart({ seats, restarts }: LengthsState, at: number, add: Add): void {
    const alone = seats.filter((seat, other) => other !== at && seat.settled === 0 && seat.heard === 0);
    if (restarts === 0 || alone.length + 1 >= this.#majority) return;
    add(`${SEATS[at]} restarts without its memory`, true, (next) => {
      next.restarts -= 1;
      const seat = next.seats[at] as LengthsSeat;
      const empty = { holder: undefined, left: 0, up: 0, settled: 0, heard: 0, longest: 0 };
      Object.assign(seat, { ...empty, run: seat.run + 1 });
      if (this.#off.has("ask-after-the-restart")) seat.round = seat.run;
    });
  }

  /** A client that learns that a server does not know the longest lease asks all servers, and tells it their replies. */
  async #addRound({ seats }: LengthsState, at: number, add: Add): Promise<void> {
    const seat = seats[at] as LengthsSeat;
    const name = SEATS[at];
    const isAlone = seat.settled === 0 && seat.heard === 0;
    // Without the rule, the others may be asked in advance.
    if ((isAlone && seat.round !== seat.run) || (this.#off.has("ask-after-the-restart") && seat.round < 0)) {
      add(`a client begins to ask for ${name}`, false, (next) => {
        for (const other of next.seats) Object.assign(other, { round: -1, said: -1 });
        (next.seats[at] as LengthsSeat).round = seat.run;
      });
    }
    if (seats.some(({ round }) => round >= 0) && seat.round < 0 && seat.said < 0) {
      const standing = await this.#ask(seat, 0, -1);
      if (standing.code === SETTLED || standing.code === QUIET) {
        add(`${name} is asked, and says that the longest lease is ${standing.longest}`, false, (next) => {
          Object.assign(next.seats[at] as LengthsSeat, standing.seat, { said: standing.longest });
        });
      }
    }
    const said = seats.filter((other) => other.said >= 0).map((other) => other.said);
    const needed = this.#off.has("ask-a-majority") ? this.#majority - 1 : this.#majority;
    if (seat.round >= 0 && said.length >= needed && isAlone) {
      const longest = Math.max(...said);
      const standing = await this.#ask(seat, longest, seat.round);
      add(`${name} is told that the longest lease is ${longest}`, false, (next) => {
        for (const other of next.seats) Object.assign(other, { round: -1, said: -1 });
        Object.assign(next.seats[at] as LengthsSeat, standing.seat);
      });
    }
  }

  async #addTelling(seat: LengthsSeat, at: number, number: number, add: Add): Promise<void> {
    if ((seat.links[number] as LengthsLink).told >= 0) return;
    const lease = this.#leases[number] as number;
    const standing = await this.#ask(seat, lease, -1);
    add(`${LETTERS[number]} tells ${SEATS[at]} that its lease is ${lease}`, false, (next) => {
      const nextSeat = next.seats[at] as LengthsSeat;
      Object.assign(nextSeat, standing.seat);
      if (standing.code === SETTLED) (nextSeat.links[number] as LengthsLink).told = seat.run;
    });
  }

  /** Before the request, a server that was not told the lease in this run is asked about itself. */
  async #addVote(seat: LengthsSeat, at: number, number: number, add: Add): Promise<void> {
    const link = seat.links[number] as LengthsLink;
    if (link.asks === 0) return;
    const lease = this.#leases[number] as number;
    const name = LETTERS[number];
    const standing = link.told === seat.run ? undefined : await this.#ask(seat, lease, -1);
    if (standing !== undefined && standing.code !== SETTLED) {
      add(`${SEATS[at]} is told of ${lease} by ${name}, and may not grant it`, false, (next) => {
        Object.assign(next.seats[at] as LengthsSeat, standing.seat);
      });
      return;
    }
    const outcome = await this.#acquire(seat, number);
    const isGranted = (outcome.reply as readonly number[])[0] === 0;
    const isLaxer = this.#off.has("count-who-was-told") || this.#off.has("tell-first");
    const counts = link.toldBefore === seat.run || this.#isFree(number) || isLaxer;
    const how = isGranted ? `granted${counts ? "" : ", too late to count"}` : "refused";
    add(`the request of ${name} on ${SEATS[at]} is ${how}`, false, (next) => {
      const nextSeat = next.seats[at] as LengthsSeat;
      Object.assign(nextSeat, standing?.seat ?? {});
      const lock = outcome.held.find(([key]) => key === "lock");
      nextSeat.holder = lock === undefined ? undefined : LETTERS.indexOf(String(lock[2]));
      nextSeat.left = lock === undefined ? 0 : Math.round(lock[3] / TICK_MS);
      const asked = { told: -1, toldBefore: -1, asks: 0, grants: isGranted && counts ? 1 : 0 };
      Object.assign(nextSeat.links[number] as LengthsLink, asked);
    });
  }

  #acquire({ holder, left }: LengthsSeat, number: number): Promise<Outcome> {
    const held: Held = [
      ["fence", "string", "1", FENCE_MS],
      ...(holder === undefined ? [] : [["lock", "string", LETTERS[holder] ?? "", left * TICK_MS] as const]),
    ];
    const args = [LETTERS[number] ?? "", (this.#leases[number] ?? 0) * TICK_MS];
    return this.#server.run(held, 0, [], { script: "redlock/acquire", keys: ["lock", "fence"], args });
  }

  /**
   * Asks a server about itself, and tells it the length of a lease.
   *
   * @param isHeardIn  the run for which the other servers were asked; -1 if they were not
   */
  async #ask({ run, up, settled, heard, longest }: LengthsSeat, lease: number, isHeardIn: number): Promise<Standing> {
    const words = [
      ...(settled === 1 ? ["run", runName(run)] : []),
      ...(heard === 1 ? ["heard", runName(run)] : []),
      ...(longest > 0 ? ["longestMs", String(longest * TICK_MS)] : []),
    ];
    // The server reports its uptime in whole seconds, the last of which may not be over.
    const info = `run_id:${runName(run)} uptime_in_seconds:${up + 1}`;
    const held: Held = [
      ["info", "string", info, -1],
      ...(words.length === 0 ? [] : [["marker", "hash", words, FENCE_MS] as const]),
    ];
    const args = [
      Math.max(lease, Math.min(...this.#leases)) * TICK_MS,
      1,
      "voter",
      "",
      isHeardIn < 0 ? "" : runName(isHeardIn),
    ];
    const call = { script: "server/lineage", keys: ["marker"], args };
    const outcome = await this.#server.run(held, NOW_MS * 1_000, [], call);
    const [code = 0, longestMs] = outcome.reply as readonly number[];
    const after = outcome.held.find(([key]) => key === "marker")?.[2] ?? [];
    const field = (name: string): string | undefined =>
      after.includes(name) ? after[after.indexOf(name) + 1] : undefined;
    const seat = {
      settled: field("run") === runName(run) ? 1 : 0,
      heard: field("heard") === runName(run) ? 1 : 0,
      longest: Number(field("longestMs") ?? 0) / TICK_MS,
    };
    return { code, longest: (longestMs ?? 0) / TICK_MS, seat };
  }
}

function runName(run: number): string {
  return `a${run}`;
}
