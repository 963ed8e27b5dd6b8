/**
 * Reads the server's state between scripts, without changing it.
 *
 * The server runs one script at a time, so its state after one script is its state before the next, except for keys
 * that expire in between. Reading takes no virtual time, and nothing can happen between it and the script.
 */
import type { Clock, DumpedKey, Keyspace } from "@holdfast/embedded";
import type { Call } from "./network.js";

/** The value of a key and its expiry, in ms of the server's clock; Infinity without expiry. */
export interface SeenKey {
  readonly value: string | readonly string[];
  readonly endsAtMs: number;
}

/** All keys at one instant. */
export type Seen = ReadonlyMap<string, SeenKey>;

/** The holder of a lock, and when its lease ends on the server's clock. */
export interface Reading {
  readonly owner: string | null;
  readonly endsAtMs: number | null;
}

/** Observes the server's keys. */
export class Observer {
  readonly #keyspace: Keyspace;
  readonly #clock: Clock;
  #before: Seen = new Map();
  #after = new Map<string, SeenKey>();

  constructor(keyspace: Keyspace, clock: Clock) {
    this.#keyspace = keyspace;
    this.#clock = clock;
  }

  /** The state before the last script. */
  get before(): Seen {
    return this.#before;
  }

  /** The state after the last script. */
  get after(): Seen {
    return this.#after;
  }

  /** Reads the state after a script. */
  look(): void {
    const nowMs = this.nowMs;
    // A key lives until the end of its last millisecond.
    this.#before = new Map([...this.#after].filter(([, { endsAtMs }]) => endsAtMs >= nowMs));
    this.#after = new Map(this.#keyspace.dump().map((key) => [key.key, seen(key, nowMs)]));
  }

  /** The server's clock, in the whole milliseconds in which it measures expiry. */
  get nowMs(): number {
    return Math.floor(this.#clock.nowUs() / 1_000);
  }

  /** Whether that owner holds the lock of the call now. */
  isHolder({ script, keys }: Call, owner: string): boolean {
    if (!script.name.startsWith("permits/"))
      return this.#isThere(keys[0]) && holderOf(keys, this.#after).owner === owner;
    return holdersOf(keys, this.#after, this.#clock.nowUs()).has(owner);
  }

  /** The number of permits of the call's semaphore or read-write lock that the owner holds; undefined if none. */
  permitsOf({ keys }: Call, owner: string): number | undefined {
    const record = holdersOf(keys, this.#after, this.#clock.nowUs()).get(owner);
    return record === undefined ? undefined : Number.parseInt(record, 10);
  }

  /** The remaining time of the owner's lease on the server, in ms; 0 if there is none. */
  restMs(keys: readonly string[], owner: string): number {
    const [lock = "", , holders = ""] = keys;
    if (/^hf:(?:mutex|election):/.test(lock)) {
      const key = this.#after.get(lock);
      return key?.value === owner ? Math.max(0, key.endsAtMs - this.nowMs) : 0;
    }
    const endsAtUs = textsOf(this.#after, lock).has(owner) ? membersOf(this.#after, holders).get(owner) : undefined;
    return endsAtUs === undefined ? 0 : Math.max(0, (endsAtUs - this.#clock.nowUs()) / 1_000);
  }

  /** Whether the lock has a holder. */
  isHeld({ script, keys }: Call): boolean {
    return this.#isThere(keys[script.name.startsWith("permits/") ? 2 : 0]);
  }

  /** Accessing an expired key removes it, so a clock that is set back later does not restore it. */
  #isThere(key = ""): boolean {
    if (this.#keyspace.pttl(key) !== -2) return true;
    this.#after.delete(key);
    return false;
  }

  /** The holder of the call's lock before and after the script. */
  readings({ script, keys }: Call): { readonly before: Reading; readonly after: Reading } {
    if (!script.name.startsWith("permits/"))
      return { before: holderOf(keys, this.#before), after: holderOf(keys, this.#after) };
    const before = holdersOf(keys, this.#before, this.#clock.nowUs());
    const after = holdersOf(keys, this.#after, this.#clock.nowUs());
    const waited = new Set(membersOf(this.#before, keys[4]).keys());
    // A release also reaps expired leases of others and grants their permits, which is an effect of the queue, not of
    // this call.
    for (const owner of [...after.keys()]) if (!before.has(owner) && waited.has(owner)) after.delete(owner);
    return { before: together(before), after: together(after) };
  }
}

function seen({ value, leftMs }: DumpedKey, nowMs: number): SeenKey {
  return { value, endsAtMs: leftMs < 0 ? Number.POSITIVE_INFINITY : nowMs + leftMs };
}

function holderOf([lock = ""]: readonly string[], all: Seen): Reading {
  const key = all.get(lock);
  return { owner: key === undefined ? null : String(key.value), endsAtMs: key?.endsAtMs ?? null };
}

/** The owners of permits whose leases have not ended, with the record and end of each. */
function holdersOf([state = "", , holders]: readonly string[], all: Seen, nowUs: number): Map<string, string> {
  const records = pairs(all.get(state)?.value);
  const live = [...membersOf(all, holders)].filter(([owner, endsAtUs]) => records.has(owner) && endsAtUs > nowUs);
  return new Map(live.map(([owner, endsAtUs]) => [owner, `${records.get(owner)} until ${endsAtUs}`]));
}

function together(holders: ReadonlyMap<string, string>): Reading {
  const each = Array.from(holders, ([owner, record]) => `${owner} (${record})`).sort();
  return { owner: each.length === 0 ? null : each.join(", "), endsAtMs: null };
}

/** The members of a sorted set, with their scores. */
export function membersOf(all: Seen, key: string | undefined): Map<string, number> {
  return new Map(Array.from(pairs(all.get(key ?? "")?.value), ([member, score]) => [member, Number(score)]));
}

/** The fields of a hash, with their values. */
export function textsOf(all: Seen, key: string): Map<string, string> {
  return pairs(all.get(key)?.value);
}

function pairs(value: string | readonly string[] | undefined): Map<string, string> {
  const found = new Map<string, string>();
  if (value === undefined || typeof value === "string") return found;
  for (let at = 0; at + 1 < value.length; at += 2) found.set(value[at] ?? "", value[at + 1] ?? "");
  return found;
}
