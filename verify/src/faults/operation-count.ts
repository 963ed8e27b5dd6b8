/** Counts the operations in the recorders' files while the clients run, and reads no part of a file twice. */
import { closeSync, openSync, readSync } from "node:fs";

/** Start of the line that a recorder writes when it calls an operation. */
const BEGINS = Buffer.from('{"line":"begin"');

/** A running count of operations. A file that is deleted keeps its count. */
export class OperationCount {
  readonly #offsets = new Map<string, number>();
  readonly #chunk: Buffer = Buffer.alloc(1 << 16);
  #count = 0;

  /** The number of operations recorded so far; reads what was added to `files` since the last call. */
  of(files: Iterable<string>): number {
    for (const file of files) this.#read(file);
    return this.#count;
  }

  #read(path: string): void {
    let file: number;
    try {
      file = openSync(path, "r");
    } catch {
      return;
    }
    try {
      for (;;) {
        const offset = this.#offsets.get(path) ?? 0;
        const chunk = this.#chunk.subarray(0, readSync(file, this.#chunk, 0, this.#chunk.length, offset));
        // Count complete lines only; the next call reads the rest.
        const lines = chunk.subarray(0, chunk.lastIndexOf(10) + 1);
        if (lines.length === 0) return;
        for (let at = lines.indexOf(BEGINS); at >= 0; at = lines.indexOf(BEGINS, at + 1)) this.#count += 1;
        this.#offsets.set(path, offset + lines.length);
      }
    } finally {
      closeSync(file);
    }
  }
}
