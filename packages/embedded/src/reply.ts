import type { Bytes } from "./bytes.js";

/**
 * An error reply of the server, such as `WRONGTYPE Operation against …`. Inside this package its message holds bytes;
 * the server converts it to text for callers.
 */
export class ReplyError extends Error {
  override readonly name = "ReplyError";
}

/** A status reply such as OK. Lua gets it as `{ok="OK"}`, not as a string. */
export class Status {
  readonly text: Bytes;

  constructor(text: Bytes) {
    this.text = text;
  }
}

/** The reply of a command. Null is nil, which becomes `false` in Lua. */
export type CommandReply = number | Bytes | null | Status | readonly CommandReply[];

/** The reply of a command that has no result. */
export const OK: Status = new Status("OK");

/** Creates the error for a key whose value has the wrong type for the command. */
export function wrongType(): ReplyError {
  return new ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value");
}

/** Creates the error for a command with invalid or conflicting arguments. */
export function syntaxError(): ReplyError {
  return new ReplyError("ERR syntax error");
}
