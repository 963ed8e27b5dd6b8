/** Encodes states as short text without field names, because a search writes and reads millions of them. */
import {
  type Budget,
  type Claim,
  idleClaim,
  type KeepPart,
  type LockState,
  type SharedPart,
  type SidePart,
  type WaitPart,
} from "./lock-state.js";

/** The initial values of a claim that waits for a condition, or signals. */
export const NO_WAIT: WaitPart = {
  may: 0,
  has: 0,
  told: 0,
  passed: 0,
  twice: 0,
  undo: 0,
  from: 0,
  kept: 0,
  stray: 0,
  sig: 0,
  ran: 0,
  owed: 0,
  quits: 0,
  sent: 0,
};
/** The initial values of a claim that reads. */
export const READS: SidePart = { isWriter: 0, doubt: 0, asked: 0, change: 0, renewal: 0, robbed: 0, stole: 0 };
/** The initial values of a re-entrant claim. */
export const NO_LEASES: SharedPart = { leases: 0, late: 0, age: 0 };
/** The initial values of a claim that may be retained. */
export const NOT_KEPT: KeepPart = { may: 0, was: 0, owed: 0 };
/** No faults except delayed messages. */
export const NO_FAULTS: Budget = {
  delays: 2,
  timeouts: 0,
  copies: 0,
  pushes: 0,
  crashes: 0,
  giveUps: 0,
  deaf: 0,
  renewals: 0,
  changes: 0,
  entries: 0,
  freezes: 0,
};

const claims = fieldsOf(idleClaim());
const waits = fieldsOf(NO_WAIT);
const sides = fieldsOf(READS);
const shares = fieldsOf(NO_LEASES);
const keeps = fieldsOf(NOT_KEPT);
const budgets = fieldsOf(NO_FAULTS);

/** Encodes a state. */
export function encode(state: LockState): string {
  const { t, held, requests, replies, pushes, dead, deaf, frozen, due, gone, paid, late } = state;
  const of = state.claims.map((claim) => {
    const { wait, side, shared, keep } = claim;
    if (keep) return [claims.values(claim), keeps.values(keep)];
    const part = wait ? waits.values(wait) : side ? sides.values(side) : shared ? shares.values(shared) : 0;
    return [claims.values(claim), part];
  });
  const [first] = state.claims;
  const kind = first?.wait ? 1 : first?.side ? 2 : first?.shared ? 3 : first?.keep ? 4 : 0;
  const left = budgets.values(state.budget);
  const groups = [dead, deaf, frozen, due, gone, paid];
  return JSON.stringify([t, held, kind, of, requests, replies, pushes, left, ...groups, late]);
}

/** Decodes a state. */
export function decode(text: string): LockState {
  const [t, held, kind, of, requests, replies, pushes, budget, ...rest] = JSON.parse(text);
  const [dead, deaf, frozen, due, gone, paid, late] = rest;
  return {
    t,
    held,
    claims: of.map(([values, part]: [unknown[], unknown[]]): Claim => {
      const claim: Claim = claims.object(values);
      if (kind === 1) claim.wait = waits.object(part);
      if (kind === 2) claim.side = sides.object(part);
      if (kind === 3) claim.shared = shares.object(part);
      if (kind === 4) claim.keep = keeps.object(part);
      return claim;
    }),
    requests,
    replies,
    pushes,
    budget: budgets.object(budget),
    dead,
    deaf,
    frozen,
    due,
    gone,
    paid,
    late,
  };
}

/** Converts between objects and lists of their values, in the field order of `example`. */
function fieldsOf<Item extends object>(
  example: Item,
): { values(item: Item): unknown[]; object(values: readonly unknown[]): Item } {
  const keys = Object.keys(example) as (keyof Item)[];
  return {
    values: (item) => keys.map((key) => item[key]),
    object(values) {
      const item = { ...example };
      for (const [i, key] of keys.entries()) item[key] = values[i] as Item[keyof Item];
      return item;
    },
  };
}
