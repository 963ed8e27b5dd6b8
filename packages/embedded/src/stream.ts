import type { Bytes } from "./bytes.js";

/** Place of an entry: a time in ms, and a number among those of that time. */
export type StreamId = readonly [ms: number, sequence: number];

/** One entry of a stream. */
export interface StreamEntry {
  readonly id: StreamId;
  /** Field and value in turn. */
  readonly fields: readonly Bytes[];
}

/** Entries in the order of their ids, which never goes back, also where entries have been removed. */
export class Stream {
  readonly #entries: StreamEntry[] = [];
  #last: StreamId = [0, 0];

  get size(): number {
    return this.#entries.length;
  }

  /** The id that the last entry had, be it still there or not. */
  get last(): StreamId {
    return this.#last;
  }

  /** The id after all others, for an entry that is added at that time. */
  nextId(nowMs: number): StreamId {
    const [ms, sequence] = this.#last;
    return nowMs > ms ? [nowMs, 0] : [ms, sequence + 1];
  }

  /** @param entry  its id is after all others */
  add(entry: StreamEntry): void {
    this.#entries.push(entry);
    this.#last = entry.id;
  }

  /** Removes the first entries but so many. */
  trim(most: number): void {
    this.#entries.splice(0, Math.max(0, this.#entries.length - most));
  }

  /** Those from one id to another, both included, the last one first. */
  backwards(from: StreamId, to: StreamId): StreamEntry[] {
    return this.#entries.filter(({ id }) => compareIds(from, id) <= 0 && compareIds(id, to) <= 0).reverse();
  }
}

/** Below 0 if `one` comes first. */
export function compareIds(one: StreamId, other: StreamId): number {
  return one[0] - other[0] || one[1] - other[1];
}
