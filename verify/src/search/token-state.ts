/**
 * What a world of tokens on a quorum is at one moment, as a value, and its name.
 *
 * Servers have no names of their own, nor have clients: states that differ only in who is called what are one.
 */

/** What an attempt is doing: not begun, asking, writing back, granted, or given up. */
export type TokenPhase = "idle" | "ask" | "conf" | "held" | "gone";

/** One attempt of one client, with an owner id of its own. */
export interface Attempt {
  ph: TokenPhase;
  /** Its token once it is granted; while it writes back, the one that it writes. 0 before. */
  token: number;
  /** The highest token that had been returned when it was called, while it is under way. */
  floor: number;
}

/** What a server is to an attempt that writes back: not of the decided set, at the token already, below it, or raised. */
export type Part = "none" | "standing" | "behind" | "raised";

/** The messages in flight between one attempt and one server. */
export interface Link {
  /** Copies of the request to acquire that have not come. */
  asks: number;
  /** Numbers in answers that have not been looked at. */
  replies: number[];
  /** What is to be confirmed, if that has not come: number reported, token, and how many copies. */
  writes: readonly [reported: number, token: number, copies: number] | undefined;
  /** `raised` as soon as the answer that says so is on its way. */
  part: Part;
}

/** One server: which attempt holds, at which number it stands, and its links, one for each attempt. */
export interface Seat {
  /** Undefined if it is free. */
  holder: number | undefined;
  /** Undefined if it has forgotten it. */
  number: number | undefined;
  links: Link[];
}

/** What may still go wrong. */
export interface TokenBudget {
  /** Requests that come twice. */
  copies: number;
  /** Servers that lose their memory. */
  losses: number;
}

/** See the file header. Attempts are in the order of their clients. */
export interface TokenState {
  /** Whether it has been chosen where the servers stand at the beginning. */
  hasBegun: boolean;
  attempts: Attempt[];
  seats: Seat[];
  budget: TokenBudget;
}

/** Nothing was asked. */
export function noLink(): Link {
  return { asks: 0, replies: [], writes: undefined, part: "none" };
}

/** A state of its own, to be changed. */
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

/** The highest number that anybody knows of. */
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
 * The state as text; the same for all that differ in names only.
 *
 * @param orders  ways to put the attempts that lead to the same world, each a list of old numbers in new order
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

/** The state that `text` is. */
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
