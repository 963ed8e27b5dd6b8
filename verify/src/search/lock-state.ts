/** The state of a world of claims on one lock: the server's data, what each client knows, and messages in flight. */
import type { Held } from "./server.js";

/** A rule of the client that can be switched off; the lists of rules describe each one. */
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
  | "over-with-the-last"
  | "recall-gives-back"
  | "recall-in-use"
  | "recalled-is-over"
  | "reuse-by-the-clock"
  | "asked-once"
  | "look-after-delete"
  | "delete-before-look";

/**
 * The phase of a claim: not begun, asking or waiting, confirming before its caller is notified, holding, releasing,
 * releasing too late, kept by its process after a release, leaving, ended, or its process has died.
 */
export type Phase = "idle" | "ask" | "conf" | "held" | "rel" | "late" | "kept" | "dep" | "end" | "dead";

/**
 * The scripts of a lock and of a condition. `quit` ends a wait without a signal; `confirm` is an `extend` before the
 * caller is notified of its grant. `delete` and `look` are the two commands of a native release.
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
  | "renew"
  | "pause"
  | "delete"
  | "look";

/** What a claim of a condition's world knows, followed by what only the search knows. */
export interface WaitPart {
  /** Whether its wait may have begun, and has begun; whether its client knows of its signal, and has passed it on. */
  may: 0 | 1;
  has: 0 | 1;
  told: 0 | 1;
  passed: 0 | 1;
  /** Whether its request may have been sent twice. */
  twice: 0 | 1;
  /** Whether a late request of the claim that began the wait must be undone. */
  undo: 0 | 1;
  /** The age of the lease that the wait gave up. */
  from: number;
  /** Whether it is remembered after its end, and therefore leaves. */
  kept: 0 | 1;
  stray: 0 | 1;
  /** For a signaling claim: to be sent, in flight, answered. */
  sig: 0 | 1 | 2;
  /** Whether its wait has run, its signal is unused (1) or used (2), a leave went unanswered, its own signal has run. */
  ran: 0 | 1;
  owed: 0 | 1 | 2;
  quits: 0 | 1;
  sent: 0 | 1;
}

/**
 * What a claim of a read-write lock knows: its mode, whether that is uncertain, its changes, a pending renewal; and
 * steals.
 */
export interface SidePart {
  isWriter: 0 | 1;
  doubt: 0 | 1;
  /** The mode that its last change requested. */
  asked: 0 | 1;
  change: number;
  /** 0 without one, otherwise its age plus 1. */
  renewal: number;
  /** The highest token of a grant that a steal has ended, or 0; known only to the search. */
  robbed: number;
  stole: 0 | 1;
}

/** The number of leases on a claim; in worlds without a rule, also of those that wrongly believe that they hold. */
export interface SharedPart {
  leases: number;
  /** Leases that were granted but are not counted yet. */
  late: number;
  /** The age of the lease, as assumed by the leases that still rely on it. */
  age: number;
}

/** What a claim that its process may retain knows. */
export interface KeepPart {
  /** Whether a release may still keep it. */
  may: 0 | 1;
  /** Whether it is given back after it was kept. */
  was: 0 | 1;
  /** Whether another claim has asked for the lock since the server granted it; known only to the search. */
  owed: 0 | 1;
}

/** One claim. Names are short because they are part of a state's text. Ages are in ticks, up to `OLD`. */
export interface Claim {
  ph: Phase;
  /** Whether a reply is pending, and the age of its request. */
  call: 0 | 1;
  sent: number;
  /** The age of the first request. */
  fs: number;
  /** Whether a request may still run without the client knowing. */
  un: 0 | 1;
  /** Whether the client knows that it is queued on the server. */
  q: 0 | 1;
  /** The last "wait" reply: whether its request took a tick or more, and its age, at most 1. */
  s: 0 | [slow: number, age: number];
  /** Whether it must ask, or leave, again. */
  aa: 0 | 1;
  tok: number;
  /** The age of the instant from which the lease counts. A short lease counts as older, so that it ends in time. */
  set: number;
  /** Whether it was granted by message and is not confirmed. */
  pv: 0 | 1;
  /** The age of the leave request, and whether it was answered. */
  dep: number;
  ans: 0 | 1;
  /** Whether the release may have run twice. */
  may: 0 | 1;
  /** The highest token that existed when this claim began. */
  fl: number;
  wait?: WaitPart;
  side?: SidePart;
  shared?: SharedPart;
  keep?: KeepPart;
}

/** A request in flight: `orphan` is 1 if its reply is not awaited, 2 if it is a second copy. */
export type Request = [claim: number, verb: Verb, token: number, orphan: 0 | 1 | 2, more?: number];
/** A reply in flight: a code, or the token of a grant; whether the request was slow; its age, at most 1. */
export type Reply = [claim: number, code: number, slow: number, age: number, value?: number];
/**
 * A grant in flight to an inbox, with its age. `order` is 0 if it is newer than every "wait" reply to the same claim,
 * 1 if it is older than the one in flight, 2 if it is older than one that has arrived: the client compares the
 * server's times in both.
 */
export type Push = [claim: number, token: number, order: 0 | 1 | 2, age: number];

/** The faults that may still occur. */
export interface Budget {
  /** Ticks that pass while a message is in flight; without any, messages arrive in the tick in which they are sent. */
  delays: number;
  /** Calls without a reply: the request or its reply is lost, or the request is late. */
  timeouts: number;
  /** Requests that the client library sends twice. */
  copies: number;
  /** Grants that are lost on the way to the inbox. */
  pushes: number;
  /** Processes that die. */
  crashes: number;
  /** Waiters that give up. */
  giveUps: number;
  /** Times that a process receives no messages for a while. */
  deaf: number;
  /** Renewals, upgrades, downgrades and reentries. They are not faults, but must be limited. */
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
  /** Clients that currently receive no messages. */
  deaf: number[];
  /** Clients whose process is frozen. The server still considers their inbox subscribed. */
  frozen: number[];
  /** Claims with a grant by message that the server has not seen confirmed. */
  due: number[];
  /** Clients whose grant by message ended unconfirmed, until a script notices that. */
  gone: number[];
  /** Waiting claims, each with a client whose unconfirmed grant delayed it. */
  paid: [claim: number, client: number][];
  /** Whether a request arrived so late that its client no longer handled it. */
  late: 0 | 1;
}

/** The age from which all ages are equal: a lease that began then has ended. */
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

/** One tick older. Ages that only distinguish fresh from old stop at 1. */
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
      if (claim.keep !== undefined) copy.keep = { ...claim.keep };
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

/** Sorts messages independently of when they were sent. */
export function byText(left: readonly unknown[], right: readonly unknown[]): number {
  const [a, b] = [left.join(), right.join()];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The rank of a token among the visible ones, for display. */
export function rankOf(state: LockState, token: number): string {
  const tokens = [...new Set([...state.claims.map(({ tok }) => tok), token, ...state.pushes.map((push) => push[1])])];
  return `#${tokens.filter((other) => other > 0 && other <= token).length}`;
}
