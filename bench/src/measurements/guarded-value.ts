/** A number in a file that several processes share, so that what they do to it under a lock can be checked. */
import { readSync, writeSync } from "node:fs";

const buffer = new Float64Array(1);

/** Reads the value. */
export function readValue(file: number): number {
  readSync(file, buffer, 0, buffer.byteLength, 0);
  return buffer[0] ?? Number.NaN;
}

/** Writes the value. */
export function writeValue(file: number, value: number): void {
  buffer[0] = value;
  writeSync(file, buffer, 0, buffer.byteLength, 0);
}
