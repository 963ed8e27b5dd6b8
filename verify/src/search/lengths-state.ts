/** What a world of leases of different length on a quorum is at one moment, and its name, which is the same whichever server is which. */

/** What an attempt is doing: not begun, asking, holding, or over. */
export type LengthsPhase = "idle" | "ask" | "held" | "over";

/** One attempt; each client makes one. */
export interface LengthsAttempt {
  ph: LengthsPhase;
  /** Ticks since its lease counts. */
  age: number;
}

/** What is under way between one attempt and one server. */
export interface LengthsLink {
  /** The run of the server that was told of the lease, as far as the client knows; -1 if none was. */
  told: number;
  /** The same when the first server was asked for the lease. */
  toldBefore: number;
  asks: number;
  /** Whether the answer has been sent that the server has granted, and counts. */
  grants: number;
}

/** One server. */
export interface LengthsSeat {
  holder: number | undefined;
  /** Ticks that are left of the lease. */
  left: number;
  /** How often it was restarted. */
  run: number;
  /** Ticks since it was; no more than matter. */
  up: number;
  /** What its marker says: whether this run may grant, whether others were asked for it, and the longest lease, in ticks. */
  settled: number;
  heard: number;
  longest: number;
  /** Whether the others are asked for it, and in which of its runs; -1 if they are not. */
  round: number;
  /** The longest lease that it has told in that round, in ticks; -1 if it has said nothing that counts. */
  said: number;
  links: LengthsLink[];
}

/** See the file header. */
export interface LengthsState {
  attempts: LengthsAttempt[];
  seats: LengthsSeat[];
  /** How many servers may still lose their memory. */
  restarts: number;
}

const PHASES: readonly LengthsPhase[] = ["idle", "ask", "held", "over"];

/** A state of its own, to be changed. */
export function copyOfLengths({ attempts, seats, restarts }: LengthsState): LengthsState {
  return {
    attempts: attempts.map((attempt) => ({ ...attempt })),
    seats: seats.map((seat) => ({ ...seat, links: seat.links.map((link) => ({ ...link })) })),
    restarts,
  };
}

/** The state as text. Servers have no names. */
export function lengthsText({ attempts, seats, restarts }: LengthsState): string {
  const of = attempts.map(({ ph, age }) => `${PHASES.indexOf(ph)},${age}`).join(";");
  const at = seats.map(({ holder = -1, left, run, up, settled, heard, longest, round, said, links }) => {
    const linked = links.map(({ told, toldBefore, asks, grants }) => `${told},${toldBefore},${asks},${grants}`);
    return `${holder},${left},${run},${up},${settled},${heard},${longest},${round},${said};${linked.join(";")}`;
  });
  return `${restarts}|${of}|${at.sort().join("|")}`;
}

/** The state that `text` is. */
export function parseLengths(text: string): LengthsState {
  const [restarts, attempts = "", ...seats] = text.split("|");
  const numbers = (words: string): number[] => words.split(",").map(Number);
  return {
    restarts: Number(restarts),
    attempts: attempts.split(";").map((words) => {
      const [ph = 0, age = 0] = numbers(words);
      return { ph: PHASES[ph] ?? "idle", age };
    }),
    seats: seats.map((seat) => {
      const [own = "", ...links] = seat.split(";");
      const [holder = -1, left = 0, run = 0, up = 0, settled = 0, heard = 0, longest = 0, round = -1, said = -1] =
        numbers(own);
      return {
        holder: holder < 0 ? undefined : holder,
        ...{ left, run, up, settled, heard, longest, round, said },
        links: links.map((words) => {
          const [told = -1, toldBefore = -1, asks = 0, grants = 0] = numbers(words);
          return { told, toldBefore, asks, grants };
        }),
      };
    }),
  };
}
