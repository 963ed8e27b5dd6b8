/** The state of a world of leases on a quorum. Its text does not depend on the names of the clients. */

/** The phase of an attempt: not begun, asking, holding, or over. */
export type TimedPhase = "idle" | "ask" | "held" | "over";

/** An attempt of a client. */
export interface TimedAttempt {
  ph: TimedPhase;
  /** Ticks since the instant from which its lease counts, up to the highest number that matters. */
  age: number;
}

/** The messages in flight between an attempt and a server. */
export interface TimedLink {
  asks: number;
  /** Whether the server has sent a reply that grants the lease. */
  grants: number;
  releases: number;
}

/** A server. */
export interface TimedSeat {
  holder: number | undefined;
  /** The remaining ticks of the lease, on the server's clock. */
  left: number;
  /** The remaining ticks for which the server is kept out. */
  out: number;
  /** The ticks that its clock may still gain. */
  gain: number;
  links: TimedLink[];
}

/** The state. */
export interface TimedState {
  attempts: TimedAttempt[];
  seats: TimedSeat[];
  /** The number of restarts with memory loss that may still happen. */
  restarts: number;
}

const PHASES: readonly TimedPhase[] = ["idle", "ask", "held", "over"];

/** A deep copy. */
export function copyOfTimed({ attempts, seats, restarts }: TimedState): TimedState {
  return {
    attempts: attempts.map((attempt) => ({ ...attempt })),
    seats: seats.map((seat) => ({ ...seat, links: seat.links.map((link) => ({ ...link })) })),
    restarts,
  };
}

/** Encodes a state; `orders` are the permutations of the attempts that lead to the same world. */
export function timedText({ attempts, seats, restarts }: TimedState, orders: readonly (readonly number[])[]): string {
  const texts = orders.map((order) => {
    const of = order.map((old) => `${PHASES.indexOf(attempts[old]?.ph ?? "idle")},${attempts[old]?.age}`);
    const at = seats.map(({ holder, left, out, gain, links }) => {
      const linked = order.map((old) => `${links[old]?.asks},${links[old]?.grants},${links[old]?.releases}`);
      return `${holder === undefined ? -1 : order.indexOf(holder)},${left},${out},${gain};${linked.join(";")}`;
    });
    return `${restarts}|${of.join(";")}|${at.sort().join("|")}`;
  });
  return texts.sort()[0] ?? "";
}

/** Decodes a state. */
export function parseTimed(text: string): TimedState {
  const [restarts, attempts = "", ...seats] = text.split("|");
  return {
    restarts: Number(restarts),
    attempts: attempts.split(";").map((words) => {
      const [ph = 0, age = 0] = words.split(",").map(Number);
      return { ph: PHASES[ph] ?? "idle", age };
    }),
    seats: seats.map((seat) => {
      const [[holder = -1, left = 0, out = 0, gain = 0] = [], ...links] = seat
        .split(";")
        .map((words) => words.split(",").map(Number));
      return {
        holder: holder < 0 ? undefined : holder,
        left,
        out,
        gain,
        links: links.map(([asks = 0, grants = 0, releases = 0]) => ({ asks, grants, releases })),
      };
    }),
  };
}
