import type { Bytes } from "./bytes.js";

/** An error that the server answers with, such as `WRONGTYPE Operation against …`. Its message is bytes until it leaves. */
export class ReplyError extends Error {
  override readonly name = "ReplyError";
}

/** A status such as OK: Lua sees `{ok="OK"}`, and not a string. */
export class Status {
  readonly text: Bytes;

  constructor(text: Bytes) {
    this.text = text;
  }
}

/** What a command answers. Null is nil, and becomes `false` in Lua. */
export type CommandReply = number | Bytes | null | Status | readonly CommandReply[];

/** What a command answers that has nothing else to say. */
export const OK: Status = new Status("OK");

/** The key holds another type than the command is for. */
export function wrongType(): ReplyError {
  return new ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value");
}

/** The words of a command do not fit together. */
export function syntaxError(): ReplyError {
  return new ReplyError("ERR syntax error");
}
