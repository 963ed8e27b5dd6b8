/** The two families of lock scripts, mutex and permits, as a world of claims sees them: keys, arguments, content. */
import { HAND_OFF_MS, LEASE_MS } from "./canonical.js";
import type { Verb } from "./lock-state.js";
import type { Call, Held } from "./server.js";

/** A kind of lock. */
export interface LockKind {
  readonly capacity: number;
  /** The violation if clients hold more than `capacity`, and if the server grants more. */
  readonly tooMany: string;
  readonly tooManyGiven: string;
  call(verb: Verb, owner: string, weight: number, token: number, enqueue: boolean): Call;
  /** The owners that hold, with their weights. */
  holders(held: Held): ReadonlyMap<string, number>;
  /** The owners whose lease has expired at `nowUs` but whose permits no script has reaped yet. */
  lapsed(held: Held, nowUs: number): readonly string[];
  /** The waiting owners, in queue order. */
  waiters(held: Held): readonly string[];
  /** The content of a server where `owner` holds `token` for `leftMs`; if by message, to `client`. */
  heldBy(owner: string, token: number, leftMs: number, client?: string): Held;
}

/** The channel of a client is this prefix and its id. */
export const INBOX = "in:";
const FENCE_MS = LEASE_MS + 600_000;
/** The time to live of a key that outlives every search. */
const FAR_MS = 60_000;
/** The key of a mutex that names the client of an unconfirmed grant. */
export const HANDED = "d";

/** An owner id as a client of `protocol` writes it. */
export function ownerOf(client: string, number: number, weight: number, protocol: 0 | 1 = 1): string {
  const owner = `${client}/${number}/${LEASE_MS}/${weight}`;
  return protocol === 0 ? owner : `${owner}/;${HAND_OFF_MS}`;
}

/** The number of tokens that a grant of a mutex reserves for that owner. */
export function tokensOf(owner: string): number {
  return Number(owner.split("/")[3]);
}

/** The script name for the protocol of the client of `owner`. */
function scriptOf(name: string, owner: string): string {
  return owner.includes(";") ? name : `0/${name}`;
}

/** A mutex. */
export const mutexKind: LockKind = {
  capacity: 1,
  tooMany: "S2: two holders at once",
  tooManyGiven: "S2: the server grants twice",
  call(verb, owner, _weight, token, enqueue) {
    const script = scriptOf(`mutex/${verb === "confirm" ? "extend" : verb}`, owner);
    // Protocol 0 has no fourth and fifth key.
    const handed = owner.includes(";") ? [HANDED] : [];
    const keys = ["l", "f", "q", ...handed, ...handed.map(() => "p")];
    switch (verb) {
      case "acquire":
        return { script, keys, args: [owner, LEASE_MS, FENCE_MS, tokensOf(owner), enqueue ? 1 : 0, INBOX] };
      case "extend":
      case "confirm":
        return { script, keys: ["l", "f", ...handed], args: [owner, token, LEASE_MS] };
      case "release":
        return { script, keys, args: [owner, token, INBOX] };
      case "leave":
        return { script, keys, args: [owner, INBOX] };
      default:
        throw new Error(`a mutex has no ${verb}`);
    }
  },
  holders(held) {
    const lock = held.find(([key]) => key === "l")?.[2];
    return typeof lock === "string" ? new Map([[lock, 1]]) : new Map();
  },
  lapsed: () => [],
  waiters: (held) => members(held, "q"),
  heldBy: (owner, token, leftMs, client) => [
    ...(client === undefined ? [] : [[HANDED, "string", client, FAR_MS] as const]),
    ["f", "string", String(token), FAR_MS],
    ["l", "string", owner, leftMs],
  ],
};

/** The words for the violations of a capacity. */
export type Words = Pick<LockKind, "tooMany" | "tooManyGiven">;

const OF_PERMITS: Words = {
  tooMany: "X1: more permits are held than there are",
  tooManyGiven: "X1: the server gives more permits than there are",
};

/** Permits without numbers, as used by semaphores and read-write locks. */
export function permitsKind(capacity: number, words: Words = OF_PERMITS): LockKind {
  const keys = ["s", "f", "h", "t"];
  return {
    capacity,
    ...words,
    call(verb, owner, weight, token, enqueue) {
      const script = scriptOf(`permits/${verb}`, owner);
      switch (verb) {
        case "acquire":
          return {
            script,
            keys: [...keys, "q", "p"],
            args: [owner, LEASE_MS, weight, enqueue ? 1 : 0, INBOX, capacity, 0],
          };
        case "extend":
          return { script, keys, args: [owner, token, LEASE_MS] };
        case "confirm":
          return { script, keys, args: [`${owner} ${token} ${LEASE_MS}`] };
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
    lapsed(held, nowUs) {
      const ends = held.find(([key]) => key === "h")?.[2] ?? [];
      return members(held, "h").filter((_, i) => Number(ends[2 * i + 1]) <= nowUs);
    },
    waiters: (held) => members(held, "q"),
    heldBy(owner, token, leftMs, client) {
      const ends = String(token + 1 + leftMs * 1_000);
      const far = String(token + 700_000_000);
      const grant = `1/${token}/${client === undefined ? "" : "/!"}`;
      const state = [
        ...["capacity", String(capacity), "declared", `,${capacity},`, "keepMs", "600000", "used", "1"],
        ...["top", "0", "free", "0", "first", ends, "until", far, owner, grant],
      ];
      return [
        ["f", "string", String(token), FAR_MS],
        ["h", "zset", [owner, ends, "-", "inf"], FAR_MS],
        ["s", "hash", state, FAR_MS],
      ];
    },
  };
}

/** The members of a sorted set, in order. */
export function members(held: Held, name: string): readonly string[] {
  const found = held.find(([key]) => key === name)?.[2];
  return typeof found === "object" ? found.filter((_, i) => i % 2 === 0) : [];
}
