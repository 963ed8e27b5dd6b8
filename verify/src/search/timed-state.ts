/** The state of a world of leases on a quorum, and its name, which does not depend on the names of the clients. */

/** What an attempt is doing: not begun, asking, holding, or over. */
export type TimedPhase = "idle" | "ask" | "held" | "over";

/** One attempt of one client. */
export interface TimedAttempt {
  ph: TimedPhase;
  /** Ticks since the moment that its lease counts from; no more than matter. */
  age: number;
}

/** What is under way between one attempt and one server. */
export interface TimedLink {
  asks: number;
  /** Whether the answer has been sent that the server has granted. */
  grants: number;
  releases: number;
}

/** One server. */
export interface TimedSeat {
  holder: number | undefined;
  /** Ticks that are left of the lease, by the clock of the server. */
  left: number;
  /** Ticks for which it is kept out. */
  out: number;
  /** Ticks that its clock may still gain. */
  gain: number;
  links: TimedLink[];
}

/** See the file header. */
export interface TimedState {
  attempts: TimedAttempt[];
  seats: TimedSeat[];
  /** How many servers may still lose their memory. */
  restarts: number;
}

const PHASES: readonly TimedPhase[] = ["idle", "ask", "held", "over"];

/** A state of its own, to be changed. */
export function copyOfTimed({ attempts, seats, restarts }: TimedState): TimedState {
  return {
    attempts: attempts.map((attempt) => ({ ...attempt })),
    seats: seats.map((seat) => ({ ...seat, links: seat.links.map((link) => ({ ...link })) })),
    restarts,
  };
}

/** The state as text; `orders` are the ways to put the attempts that lead to the same world. */
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

/** The state that `text` is. */
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
