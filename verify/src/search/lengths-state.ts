/** The state of a world with leases of different lengths on a quorum. Its text does not depend on the server order. */

/** The phase of an attempt: not begun, asking, holding, or over. */
export type LengthsPhase = "idle" | "ask" | "held" | "over";

/** An attempt to acquire. Each client makes one. */
export interface LengthsAttempt {
  ph: LengthsPhase;
  /** Ticks since the start of its lease. */
  age: number;
}

/** The communication between an attempt and a server. */
export interface LengthsLink {
  /** The run of the server that has recorded the lease length, as far as the client knows; -1 if none. */
  told: number;
  /** The value of `told` when the attempt began to request the lease. */
  toldBefore: number;
  asks: number;
  /** Whether the server has sent a reply that grants the lease and that still counts. */
  grants: number;
}

/** A server. */
export interface LengthsSeat {
  holder: number | undefined;
  /** Remaining ticks of the lease. */
  left: number;
  /** The number of restarts. */
  run: number;
  /** Ticks since the last restart, up to the highest value that matters. */
  up: number;
  /** Its marker: whether this run may grant, whether the other servers were asked, and the longest lease in ticks. */
  settled: number;
  heard: number;
  longest: number;
  /** The run for which the other servers are being asked; -1 if they are not. */
  round: number;
  /** The longest lease in ticks that this server has reported in that round; -1 if no report counts. */
  said: number;
  links: LengthsLink[];
}

/** A state of the world. */
export interface LengthsState {
  attempts: LengthsAttempt[];
  seats: LengthsSeat[];
  /** The number of restarts with memory loss that may still happen. */
  restarts: number;
}

const PHASES: readonly LengthsPhase[] = ["idle", "ask", "held", "over"];

/** A deep copy. */
export function copyOfLengths({ attempts, seats, restarts }: LengthsState): LengthsState {
  return {
    attempts: attempts.map((attempt) => ({ ...attempt })),
    seats: seats.map((seat) => ({ ...seat, links: seat.links.map((link) => ({ ...link })) })),
    restarts,
  };
}

/** Encodes a state. Servers are sorted, so states that differ only in the server order have the same text. */
export function lengthsText({ attempts, seats, restarts }: LengthsState): string {
  const of = attempts.map(({ ph, age }) => `${PHASES.indexOf(ph)},${age}`).join(";");
  const at = seats.map(({ holder = -1, left, run, up, settled, heard, longest, round, said, links }) => {
    const linked = links.map(({ told, toldBefore, asks, grants }) => `${told},${toldBefore},${asks},${grants}`);
    return `${holder},${left},${run},${up},${settled},${heard},${longest},${round},${said};${linked.join(";")}`;
  });
  return `${restarts}|${of}|${at.sort().join("|")}`;
}

/** Decodes a state. */
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
