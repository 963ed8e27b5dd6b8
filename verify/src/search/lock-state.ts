/** The state of a world of claims on one lock: what the server holds, what each client knows, what is under way. */
import type { Held } from "./server.js";

/** A rule of the client that can be switched off; the lists of rules say what each one is. */
export type ClientRule =
  | "validity-from-sending"
  | "hand-over-is-short"
  | "confirmed-when-answered"
  | "refusal-is-none"
  | "batch-has-the-rest"
  | "own-clock"
  | "earliest-grant"
  | "stale-grant"
  | "fresh-claim"
  | "recheck"
  | "keep-leaving"
  | "over-when-sent"
  | "sent-twice"
  | "honour-loss"
  | "leave-at-all"
  | "wait-ends-the-lease"
  | "undo-late-requests"
  | "pass-on-once"
  | "downgrade-from-asking"
  | "upgrade-when-confirmed"
  | "last-gives-back"
  | "count-at-once"
  | "loss-ends-all"
  | "no-entry-when-lost"
  | "entry-keeps-token"
  | "over-with-the-last";

/**
 * Where a claim is: not begun, asking or waiting, confirming before its caller hears of it, holding, giving back, giving back too late, leaving, over, or its
 * process has died. `void` is a claim that never was.
 */
export type Phase = "idle" | "ask" | "conf" | "held" | "rel" | "late" | "dep" | "end" | "dead";

/**
 * The scripts of a lock, and those of a condition: `quit` ends a wait without a signal; `confirm` is an `extend` before the
 * caller hears of its grant.
 */
export type Verb =
  | "acquire"
  | "extend"
  | "confirm"
  | "release"
  | "leave"
  | "wait"
  | "quit"
  | "signal"
  | "reweigh"
  | "renew";

/** What a claim of a condition's world knows; and, last, what the search knows of it. */
export interface WaitPart {
  /** Whether its wait may have begun, and has begun; whether its client knows of its signal, and has passed it on. */
  may: 0 | 1;
  has: 0 | 1;
  told: 0 | 1;
  passed: 0 | 1;
  /** Whether its request may have been sent twice. */
  twice: 0 | 1;
  /** Whether a late request of the claim that waited by it is to be undone. */
  undo: 0 | 1;
  /** Age of the lease that the wait gave up. */
  from: number;
  /** Whether it is remembered after its end, and leaves because of that. */
  kept: 0 | 1;
  stray: 0 | 1;
  /** Of a signaller: to be sent, under way, answered. */
  sig: 0 | 1 | 2;
  /** Whether its wait has run, its signal is unused (1) or used (2), a leave went unanswered, its own signal has run. */
  ran: 0 | 1;
  owed: 0 | 1 | 2;
  quits: 0 | 1;
  sent: 0 | 1;
}

/** What a claim of a read-write lock knows: its side, whether that is in doubt, its changes, a renewal under way; and steals. */
export interface SidePart {
  isWriter: 0 | 1;
  doubt: 0 | 1;
  /** The side that its last change was to. */
  asked: 0 | 1;
  change: number;
  /** 0 without one, else its age and 1. */
  renewal: number;
  /** Highest token of a grant that a steal has ended, or 0; and whether it has stolen: known to the search only. */
  robbed: number;
  stole: 0 | 1;
}

/** How many leases stand on a claim; in worlds without a rule, how many believe so although they do not. */
export interface SharedPart {
  leases: number;
  /** Leases that were let in and are not counted yet. */
  late: number;
  /** Age of the lease that those who still believe have in mind. */
  age: number;
}

/** One claim. Names are short because they are part of the name of a state. Ages are in ticks, up to `OLD`. */
export interface Claim {
  ph: Phase;
  /** Whether an answer is awaited, and the age of its request. */
  call: 0 | 1;
  sent: number;
  /** Age of the first request. */
  fs: number;
  /** Whether a request may still run without our knowing. */
  un: 0 | 1;
  /** Whether the server is known to have it in the queue. */
  q: 0 | 1;
  /** Of the last "you wait": whether its request took a tick or more, and how old it is, at most 1. */
  s: 0 | [slow: number, age: number];
  /** Whether it is to ask, or leave, again. */
  aa: 0 | 1;
  tok: number;
  /** Age of the moment from which the lease is trusted. A short lease counts as older, so that it ends in time. */
  set: number;
  /** Whether it was granted by message and is not confirmed. */
  pv: 0 | 1;
  /** Age of the departure; whether it was answered. */
  dep: number;
  ans: 0 | 1;
  /** Whether the release may have run twice. */
  may: 0 | 1;
  /** The highest token that anybody had when this claim began. */
  fl: number;
  wait?: WaitPart;
  side?: SidePart;
  shared?: SharedPart;
}

/** A request under way: `orphan` is 1 if its answer is not awaited, 2 if it is a second copy. */
export type Request = [claim: number, verb: Verb, token: number, orphan: 0 | 1 | 2, more?: number];
/** An answer under way: a code, or the token if it is a grant; whether the request was slow; its age, at most 1. */
export type Reply = [claim: number, code: number, slow: number, age: number, value?: number];
/**
 * A grant under way to an inbox, and its age. `order` is 0 if it is newer than any answer "you wait" to the same
 * claim, 1 if it is older than the one under way, 2 if it is older than one that has arrived: the client compares the
 * server's times in both.
 */
export type Push = [claim: number, token: number, order: 0 | 1 | 2, age: number];

/** What may still go wrong. */
export interface Budget {
  /** Ticks that pass while a message is under way; without any, messages arrive in the tick in which they are sent. */
  delays: number;
  /** Calls whose answer does not come: the request or its answer is lost, or the request is late. */
  timeouts: number;
  /** Requests that the client library sends twice. */
  copies: number;
  /** Grants that get lost on the way to the inbox. */
  pushes: number;
  /** Processes that die. */
  crashes: number;
  /** Waiters that give up. */
  giveUps: number;
  /** Times that a process is not reached by messages for a while. */
  deaf: number;
  /** Renewals, changes of side and re-entries, which are no faults but have to end some time. */
  renewals: number;
  changes: number;
  entries: number;
  /** Processes that freeze for a while. */
  freezes: number;
}

export interface LockState {
  t: number;
  held: Held;
  claims: Claim[];
  requests: Request[];
  replies: Reply[];
  pushes: Push[];
  budget: Budget;
  /** Clients that died. */
  dead: number[];
  /** Clients that no message reaches at present. */
  deaf: number[];
  /** Clients whose process is frozen. The server still counts their inbox as subscribed. */
  frozen: number[];
  /** Claims with a grant by message that the server has no confirmation of. */
  due: number[];
  /** Clients whose grant by message ended without confirmation, until a script looks for that. */
  gone: number[];
  /** Waiting claims, each with a client whose unconfirmed grant it has waited for. */
  paid: [claim: number, client: number][];
  /** Whether a request came so late that its client had stopped looking after it. */
  late: 0 | 1;
}

/** An age from which on everything is equally old: a lease that began then is over. */
export const OLD = 2;

/** A claim that has not begun. */
export function idleClaim(): Claim {
  return {
    ph: "idle",
    call: 0,
    sent: 0,
    fs: 0,
    un: 0,
    q: 0,
    s: 0,
    aa: 0,
    tok: 0,
    set: 0,
    pv: 0,
    dep: 0,
    ans: 0,
    may: 0,
    fl: 0,
  };
}

/** One tick older. What is told apart only as fresh or not stops at an age of 1. */
export function older(age: number, oldest: number = OLD): number {
  return Math.min(age + 1, oldest);
}

/** A copy that can be changed. */
export function copyOf(state: LockState): LockState {
  return {
    ...state,
    claims: state.claims.map((claim) => {
      const copy = { ...claim };
      if (claim.wait !== undefined) copy.wait = { ...claim.wait };
      if (claim.side !== undefined) copy.side = { ...claim.side };
      if (claim.shared !== undefined) copy.shared = { ...claim.shared };
      return copy;
    }),
    requests: state.requests.map((request) => [...request]),
    replies: state.replies.map((reply) => [...reply]),
    pushes: state.pushes.map((push) => [...push]),
    budget: { ...state.budget },
    dead: [...state.dead],
    deaf: [...state.deaf],
    frozen: [...state.frozen],
    due: [...state.due],
    gone: [...state.gone],
    paid: state.paid.map((pair) => [...pair]),
  };
}

/** An order of messages that does not depend on when they were sent. */
export function byText(left: readonly unknown[], right: readonly unknown[]): number {
  const [a, b] = [left.join(), right.join()];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Which of the tokens in sight it is, for people. */
export function rankOf(state: LockState, token: number): string {
  const tokens = [...new Set([...state.claims.map(({ tok }) => tok), token, ...state.pushes.map((push) => push[1])])];
  return `#${tokens.filter((other) => other > 0 && other <= token).length}`;
}
