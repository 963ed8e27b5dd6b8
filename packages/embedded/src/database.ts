import type { Bytes } from "./bytes.js";
import { wrongType } from "./reply.js";
import { SortedSet } from "./sorted-set.js";
import { Stream } from "./stream.js";

/** The types of a value, by the names that TYPE answers. */
export interface Values {
  readonly string: Bytes;
  readonly hash: Map<Bytes, Bytes>;
  readonly set: Set<Bytes>;
  readonly zset: SortedSet;
  readonly list: Bytes[];
  readonly stream: Stream;
}

/** Name of a type. */
export type ValueType = keyof Values;

interface Entry {
  readonly type: ValueType;
  value: Values[ValueType];
  /** The last millisecond at which it is still there; infinite without expiry. */
  expiresAtMs: number;
}

const EMPTY: { readonly [Type in Exclude<ValueType, "string">]: () => Values[Type] } = {
  hash: () => new Map(),
  set: () => new Set(),
  zset: () => new SortedSet(),
  list: () => [],
  stream: () => new Stream(),
};

/** Below this many keys a search for expired ones is not worth its time. */
const SWEEP_FROM = 1024;

/**
 * Keys, their types and their expiry.
 *
 * Time stands still between two calls of `freeze`: within one script a key is there for all commands or for none.
 * An expired key is gone the moment it is looked at.
 */
export class Database {
  readonly #entries = new Map<Bytes, Entry>();
  #nowMs = 0;
  #sweepAt = SWEEP_FROM;

  get nowMs(): number {
    return this.#nowMs;
  }

  freeze(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#entries.size >= this.#sweepAt) this.#sweep();
  }

  type(key: Bytes): ValueType | undefined {
    return this.#find(key)?.type;
  }

  /** @throws ReplyError  the key holds another type */
  get<Type extends ValueType>(key: Bytes, type: Type): Values[Type] | undefined {
    const entry = this.#find(key);
    if (entry === undefined) return undefined;
    if (entry.type !== type) throw wrongType();
    return entry.value as Values[Type]; // the two are only ever written together
  }

  /** The collection at `key`, made if absent. Who makes one must put something in, or call `tidy`. */
  open<Type extends Exclude<ValueType, "string">>(key: Bytes, type: Type): Values[Type] {
    const present = this.get(key, type);
    if (present !== undefined) return present;
    const value = EMPTY[type]();
    this.#entries.set(key, { type, value, expiresAtMs: Infinity });
    return value;
  }

  /** Writes a string over whatever was there, expiry included. */
  setString(key: Bytes, value: Bytes, expiresAtMs: number): void {
    this.#entries.set(key, { type: "string", value, expiresAtMs });
  }

  /** An empty collection does not exist; a stream may be empty. */
  tidy(key: Bytes): void {
    const value = this.#entries.get(key)?.value;
    if (value === undefined || typeof value === "string" || value instanceof Stream) return;
    if ((Array.isArray(value) ? value.length : value.size) === 0) this.#entries.delete(key);
  }

  delete(key: Bytes): boolean {
    return this.#find(key) !== undefined && this.#entries.delete(key);
  }

  /** Undefined without the key, infinite without expiry. */
  expiresAtMs(key: Bytes): number | undefined {
    return this.#find(key)?.expiresAtMs;
  }

  expireAt(key: Bytes, expiresAtMs: number): void {
    const entry = this.#find(key);
    if (entry !== undefined) entry.expiresAtMs = expiresAtMs;
  }

  keys(): Bytes[] {
    this.#sweep();
    return [...this.#entries.keys()].sort();
  }

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

  /** Keys that nobody asks for again would stay for ever. Twice the live ones is the bound, at a constant cost per write. */
  #sweep(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#nowMs > entry.expiresAtMs) this.#entries.delete(key);
    }
    this.#sweepAt = Math.max(SWEEP_FROM, this.#entries.size * 2);
  }
}
