import type { Bytes } from "./bytes.js";
import { wrongType } from "./reply.js";
import { SortedSet } from "./sorted-set.js";
import { Stream } from "./stream.js";

/** The types of values, by the names that TYPE returns. */
export interface Values {
  readonly string: Bytes;
  readonly hash: Map<Bytes, Bytes>;
  readonly set: Set<Bytes>;
  readonly zset: SortedSet;
  readonly list: Bytes[];
  readonly stream: Stream;
}

/** The name of a type of value. */
export type ValueType = keyof Values;

interface Entry {
  readonly type: ValueType;
  value: Values[ValueType];
  /** The last millisecond at which the key still exists; Infinity if it does not expire. */
  expiresAtMs: number;
}

const EMPTY: { readonly [Type in Exclude<ValueType, "string">]: () => Values[Type] } = {
  hash: () => new Map(),
  set: () => new Set(),
  zset: () => new SortedSet(),
  list: () => [],
  stream: () => new Stream(),
};

/** With fewer keys than this, a search for expired keys is not worth its cost. */
const SWEEP_FROM = 1024;

/**
 * The keys of a server, with their types and expiry.
 *
 * The time changes only when `freeze` is called, so no key expires while a script runs. An expired key is deleted when
 * it is accessed.
 */
export class Database {
  readonly #entries = new Map<Bytes, Entry>();
  #nowMs = 0;
  #sweepAt = SWEEP_FROM;

  /** The time set by `freeze`, in ms since 1970. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Stops the clock at `nowMs`, in ms since 1970, until the next call. */
  freeze(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#entries.size >= this.#sweepAt) this.#sweep();
  }

  /** Returns the type of a key; undefined if it does not exist. */
  type(key: Bytes): ValueType | undefined {
    return this.#find(key)?.type;
  }

  /** Returns the value of a key; undefined if it does not exist. @throws ReplyError  the key has another type */
  get<Type extends ValueType>(key: Bytes, type: Type): Values[Type] | undefined {
    const entry = this.#find(key);
    if (entry === undefined) return undefined;
    if (entry.type !== type) throw wrongType();
    return entry.value as Values[Type]; // type and value are only ever written together
  }

  /**
   * Returns the collection at `key`, and creates it if it does not exist. The caller must add an item or call `tidy`.
   *
   * @throws ReplyError  the key has another type
   */
  open<Type extends Exclude<ValueType, "string">>(key: Bytes, type: Type): Values[Type] {
    const present = this.get(key, type);
    if (present !== undefined) return present;
    const value = EMPTY[type]();
    this.#entries.set(key, { type, value, expiresAtMs: Infinity });
    return value;
  }

  /** Sets a key to a string, and replaces any previous value and expiry. */
  setString(key: Bytes, value: Bytes, expiresAtMs: number): void {
    this.#entries.set(key, { type: "string", value, expiresAtMs });
  }

  /** Deletes the key if its collection is empty. Only a stream may be empty. */
  tidy(key: Bytes): void {
    const value = this.#entries.get(key)?.value;
    if (value === undefined || typeof value === "string" || value instanceof Stream) return;
    if ((Array.isArray(value) ? value.length : value.size) === 0) this.#entries.delete(key);
  }

  /** Deletes a key. Returns whether it existed. */
  delete(key: Bytes): boolean {
    return this.#find(key) !== undefined && this.#entries.delete(key);
  }

  /** Returns when a key expires, in ms since 1970; undefined if it does not exist, Infinity if it does not expire. */
  expiresAtMs(key: Bytes): number | undefined {
    return this.#find(key)?.expiresAtMs;
  }

  /** Sets when a key expires, in ms since 1970. */
  expireAt(key: Bytes, expiresAtMs: number): void {
    const entry = this.#find(key);
    if (entry !== undefined) entry.expiresAtMs = expiresAtMs;
  }

  /** Returns all keys, sorted by their bytes. */
  keys(): Bytes[] {
    this.#sweep();
    return [...this.#entries.keys()].sort();
  }

  /** Deletes all keys. */
  clear(): void {
    this.#entries.clear();
    this.#sweepAt = SWEEP_FROM;
  }

  #find(key: Bytes): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#nowMs <= entry.expiresAtMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  /**
   * Deletes expired keys, because a key that is never accessed again would stay forever. `freeze` runs this when the
   * number of keys has doubled since the last run, which bounds memory at a constant amortized cost per write.
   */
  #sweep(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#nowMs > entry.expiresAtMs) this.#entries.delete(key);
    }
    this.#sweepAt = Math.max(SWEEP_FROM, this.#entries.size * 2);
  }
}
