/**
 * The state of a world of tokens on a quorum, and its text.
 *
 * Servers and clients have no names of their own: states that differ only in names are the same.
 */

/** The phase of an attempt: not begun, requesting, writing back, granted, or given up. */
export type TokenPhase = "idle" | "ask" | "conf" | "held" | "gone";

/** One attempt of a client, with its own owner id. */
export interface Attempt {
  ph: TokenPhase;
  /** Its token once granted; while it writes back, the token that it writes; 0 before. */
  token: number;
  /** The highest token that had been returned when it was called, while it runs. */
  floor: number;
}

/**
 * The role of a server for an attempt that writes back: not in the decided set, already at the token, below it, or
 * raised to it.
 */
export type Part = "none" | "standing" | "behind" | "raised";

/** The messages in flight between an attempt and a server. */
export interface Link {
  /** Copies of the acquire request that have not arrived. */
  asks: number;
  /** Numbers in replies that have not been processed. */
  replies: number[];
  /** The confirmation that has not arrived, if any: reported number, token, and number of copies. */
  writes: readonly [reported: number, token: number, copies: number] | undefined;
  /** `raised` as soon as the reply that says so was sent. */
  part: Part;
}

/** One server: the holding attempt, its number, and its links, one for each attempt. */
export interface Seat {
  /** Undefined if it is free. */
  holder: number | undefined;
  /** Undefined if it has lost its memory. */
  number: number | undefined;
  links: Link[];
}

/** The faults that may still occur. */
export interface TokenBudget {
  /** Requests that arrive twice. */
  copies: number;
  /** Servers that lose their memory. */
  losses: number;
}

/** The state. Attempts are grouped by client. */
export interface TokenState {
  /** Whether the initial numbers of the servers have been chosen. */
  hasBegun: boolean;
  attempts: Attempt[];
  seats: Seat[];
  budget: TokenBudget;
}

/** A link without messages. */
export function noLink(): Link {
  return { asks: 0, replies: [], writes: undefined, part: "none" };
}

/** A copy that can be changed. */
export function copyOfTokens(state: TokenState): TokenState {
  return {
    hasBegun: state.hasBegun,
    attempts: state.attempts.map((attempt) => ({ ...attempt })),
    seats: state.seats.map(({ holder, number, links }) => ({
      holder,
      number,
      links: links.map((link) => ({ ...link, replies: [...link.replies] })),
    })),
    budget: { ...state.budget },
  };
}

/** The highest number that anyone knows. */
export function highest(state: TokenState): number {
  const inLinks = state.seats.flatMap(({ number = 0, links }) => [
    number,
    ...links.flatMap(({ replies, writes }) => [...replies, writes?.[1] ?? 0]),
  ]);
  return Math.max(...inLinks, ...state.attempts.flatMap(({ token, floor }) => [token, floor]));
}

const PHASES: readonly TokenPhase[] = ["idle", "ask", "conf", "held", "gone"];
const PARTS: readonly Part[] = ["none", "standing", "behind", "raised"];

/**
 * The state as text; the same for states that differ only in names.
 *
 * @param orders  permutations of the attempts that lead to the same world, each a list of old indexes in the new
 * order
 */
export function tokenText(state: TokenState, orders: readonly (readonly number[])[]): string {
  let least = "";
  for (const order of orders) {
    const seats = state.seats.map((seat) => seatText(seat, order)).sort();
    const attempts = order.map((old) => {
      const { ph, token, floor } = state.attempts[old] as Attempt;
      return `${PHASES.indexOf(ph)},${token},${floor}`;
    });
    const { copies, losses } = state.budget;
    const text = `${state.hasBegun ? 1 : 0},${copies},${losses}|${attempts.join(";")}|${seats.join("|")}`;
    if (least === "" || text < least) least = text;
  }
  return least;
}

function seatText({ holder, number, links }: Seat, order: readonly number[]): string {
  const of = order.map((old) => {
    const { asks, replies, writes, part } = links[old] as Link;
    return `${asks},${replies.join("+")},${writes?.join("+") ?? ""},${PARTS.indexOf(part)}`;
  });
  return `${holder === undefined ? "" : order.indexOf(holder)},${number ?? ""};${of.join(";")}`;
}

/** Parses the text of a state. */
export function parseTokens(text: string): TokenState {
  const [head = "", attempts = "", ...seats] = text.split("|");
  const [hasBegun, copies = 0, losses = 0] = head.split(",").map(Number);
  return {
    hasBegun: hasBegun === 1,
    budget: { copies, losses },
    attempts: attempts.split(";").map((words) => {
      const [ph = 0, token = 0, floor = 0] = words.split(",").map(Number);
      return { ph: PHASES[ph] ?? "idle", token, floor };
    }),
    seats: seats.map((seat) => {
      const [own = "", ...links] = seat.split(";");
      const [holder, number] = own.split(",");
      return { holder: numberOf(holder), number: numberOf(number), links: links.map(linkOf) };
    }),
  };
}

function linkOf(text: string): Link {
  const [asks, replies = "", writes = "", part] = text.split(",");
  const [from = 0, to = 0, copies = 0] = writes.split("+").map(Number);
  return {
    asks: Number(asks),
    replies: replies === "" ? [] : replies.split("+").map(Number),
    writes: writes === "" ? undefined : [from, to, copies],
    part: PARTS[Number(part)] ?? "none",
  };
}

function numberOf(text = ""): number | undefined {
  return text === "" ? undefined : Number(text);
}
