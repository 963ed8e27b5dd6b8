/** What the two machines of the server look like to a world of claims: keys, arguments, and what they hold. */
import { LEASE_MS } from "./canonical.js";
import type { Verb } from "./lock-state.js";
import type { Call, Held } from "./server.js";

/** One kind of lock. */
export interface LockKind {
  readonly capacity: number;
  /** What it is if more is held than there is, and if the server gives more. */
  readonly tooMany: string;
  readonly tooManyGiven: string;
  call(verb: Verb, owner: string, weight: number, token: number, enqueue: boolean): Call;
  /** Owners that hold, with their weights. */
  holders(held: Held): ReadonlyMap<string, number>;
  /** Owners that wait, the first one first. */
  waiters(held: Held): readonly string[];
}

/** What a client id is appended to for its channel. */
export const INBOX = "in:";
const FENCE_MS = LEASE_MS + 600_000;

/** A mutex. */
export const mutexKind: LockKind = {
  capacity: 1,
  tooMany: "S2: two hold at once",
  tooManyGiven: "S2: the server grants twice",
  call(verb, owner, _weight, token, enqueue) {
    const script = `mutex/${verb}`;
    switch (verb) {
      case "acquire":
        return {
          script,
          keys: ["l", "f", "q", "p"],
          args: [owner, LEASE_MS, FENCE_MS, 1, enqueue ? 1 : 0, INBOX],
        };
      case "extend":
        return { script, keys: ["l", "f"], args: [owner, token, LEASE_MS] };
      case "release":
        return { script, keys: ["l", "f", "q", "p"], args: [owner, token, INBOX] };
      case "leave":
        return { script, keys: ["l", "f", "q", "p"], args: [owner, INBOX] };
      default:
        throw new Error(`a mutex has no ${verb}`);
    }
  },
  holders(held) {
    const lock = held.find(([key]) => key === "l")?.[2];
    return typeof lock === "string" ? new Map([[lock, 1]]) : new Map();
  },
  waiters: (held) => members(held, "q"),
};

/** What is said of too many. */
export type Words = Pick<LockKind, "tooMany" | "tooManyGiven">;

const OF_PERMITS: Words = {
  tooMany: "X1: more permits are held than there are",
  tooManyGiven: "X1: the server gives more permits than there are",
};

/** Permits without numbers, as a semaphore and a read-write lock have them. */
export function permitsKind(capacity: number, words: Words = OF_PERMITS): LockKind {
  const keys = ["s", "f", "h", "t"];
  return {
    capacity,
    ...words,
    call(verb, owner, weight, token, enqueue) {
      const script = `permits/${verb}`;
      switch (verb) {
        case "acquire":
          return {
            script,
            keys: [...keys, "q", "p"],
            args: [owner, LEASE_MS, weight, enqueue ? 1 : 0, INBOX, capacity, 0],
          };
        case "extend":
          return { script, keys, args: [owner, token, LEASE_MS] };
        case "release":
          return { script, keys: [...keys, "q", "p"], args: [owner, token, INBOX, 0] };
        case "leave":
          return { script, keys: [...keys, "q", "p"], args: [owner, INBOX, 0] };
        default:
          throw new Error(`permits have no ${verb}`);
      }
    },
    holders(held) {
      const state = held.find(([key]) => key === "s")?.[2] ?? [];
      const holders = new Map<string, number>();
      for (let i = 0; i + 1 < state.length; i += 2) {
        const field = state[i] ?? "";
        if (field.includes("/")) holders.set(field, Number.parseInt(state[i + 1] ?? "0", 10));
      }
      return holders;
    },
    waiters: (held) => members(held, "q"),
  };
}

/** Members of a sorted set, in order. */
export function members(held: Held, name: string): readonly string[] {
  const found = held.find(([key]) => key === name)?.[2];
  return typeof found === "object" ? found.filter((_, i) => i % 2 === 0) : [];
}
