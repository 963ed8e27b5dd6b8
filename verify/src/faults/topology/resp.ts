/**
 * The parts of the Redis protocol (RESP2 and RESP3) that a proxy and single commands need.
 *
 * A value keeps its original bytes, so that a proxy forwards exactly what it received.
 */

/** A value of the Redis protocol. All aggregate types are arrays here. */
export type RespValue = string | number | null | Error | RespValue[];

/** A complete value with its bytes. */
export interface Frame {
  readonly value: RespValue;
  readonly bytes: Buffer;
  /** The first byte of the value, such as `>` for a RESP3 push. */
  readonly type: string;
}

/** Splits a byte stream into complete values. Incomplete values are parsed again with each new chunk. */
export class RespParser {
  #rest: Buffer = Buffer.alloc(0);

  /** The values that these bytes complete. @throws Error  invalid protocol */
  push(bytes: Buffer): Frame[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const frames: Frame[] = [];
    let start = 0;
    while (start < this.#rest.length) {
      const parsed = parse(this.#rest, start);
      if (parsed === undefined) break;
      const [value, end] = parsed;
      frames.push({
        value,
        bytes: this.#rest.subarray(start, end),
        type: String.fromCharCode(this.#rest[start] as number),
      });
      start = end;
    }
    this.#rest = this.#rest.subarray(start);
    return frames;
  }
}

/** Encodes a command. */
export function encodeCommand(words: readonly (string | number)[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(`${word}`)}\r\n${word}\r\n`).join("")}`;
}

function parse(bytes: Buffer, start: number): [RespValue, number] | undefined {
  const lineEnd = bytes.indexOf("\r\n", start);
  if (lineEnd < 0) return undefined;
  const type = String.fromCharCode(bytes[start] as number);
  const line = bytes.toString("utf8", start + 1, lineEnd);
  const next = lineEnd + 2;
  switch (type) {
    case "+":
    case "(":
      return [line, next];
    case "-":
      return [new Error(line), next];
    case ":":
    case ",":
      return [Number(line), next];
    case "#":
      return [line === "t" ? 1 : 0, next];
    case "_":
      return [null, next];
    case "$":
    case "=":
    case "!":
      return parseText(bytes, next, Number(line), type);
    case "*":
    case "~":
    case ">":
      return parseItems(bytes, next, Number(line));
    case "%":
      return parseItems(bytes, next, 2 * Number(line));
    default:
      throw new Error(`not the Redis protocol: ${JSON.stringify(type + line)}`);
  }
}

function parseText(bytes: Buffer, start: number, length: number, type: string): [RespValue, number] | undefined {
  if (length < 0) return [null, start];
  const end = start + length;
  if (bytes.length < end + 2) return undefined;
  const text = bytes.toString("utf8", start, end);
  return [type === "!" ? new Error(text) : text, end + 2];
}

function parseItems(bytes: Buffer, start: number, count: number): [RespValue, number] | undefined {
  if (count < 0) return [null, start];
  const items: RespValue[] = [];
  let position = start;
  for (let index = 0; index < count; index += 1) {
    const parsed = parse(bytes, position);
    if (parsed === undefined) return undefined;
    items.push(parsed[0]);
    position = parsed[1];
  }
  return [items, position];
}
