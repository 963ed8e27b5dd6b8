import type { Bytes } from "./bytes.js";

/** The id of an entry: a time in ms since 1970, and a sequence number within that millisecond. */
export type StreamId = readonly [ms: number, sequence: number];

/** An entry of a stream. */
export interface StreamEntry {
  readonly id: StreamId;
  /** Alternating fields and values. */
  readonly fields: readonly Bytes[];
}

/** A stream: entries in the order of their ids. Ids always increase, even after entries are removed. */
export class Stream {
  readonly #entries: StreamEntry[] = [];
  #last: StreamId = [0, 0];

  get size(): number {
    return this.#entries.length;
  }

  /** The id of the last entry that was added, even if it has been removed. */
  get last(): StreamId {
    return this.#last;
  }

  /** Returns an id greater than all others, for an entry that is added at `nowMs`. */
  nextId(nowMs: number): StreamId {
    const [ms, sequence] = this.#last;
    return nowMs > ms ? [nowMs, 0] : [ms, sequence + 1];
  }

  /** Appends an entry. @param entry  its id must be greater than all others */
  add(entry: StreamEntry): void {
    this.#entries.push(entry);
    this.#last = entry.id;
  }

  /** Removes the first entries, until at most `most` remain. */
  trim(most: number): void {
    this.#entries.splice(0, Math.max(0, this.#entries.length - most));
  }

  /** Returns the entries between two ids, both inclusive, the last one first. */
  backwards(from: StreamId, to: StreamId): StreamEntry[] {
    return this.#entries.filter(({ id }) => compareIds(from, id) <= 0 && compareIds(id, to) <= 0).reverse();
  }
}

/** Compares two ids. The result is negative if `one` comes first, and 0 if they are equal. */
export function compareIds(one: StreamId, other: StreamId): number {
  return one[0] - other[0] || one[1] - other[1];
}
