/** The exit codes of every verb, and the error that carries one. */

/** What `holdfast` exits with; a command that it runs has codes of its own. */
export const EXIT = {
  done: 0,
  /** The answer is no, and nothing was changed. */
  no: 1,
  usage: 64,
  /** The name is in use as another kind or with another number of permits, or the key is not ours. */
  otherKind: 65,
  /** Redis, or a majority, cannot be reached, or the outcome is unknown. Never "busy". */
  unreachable: 69,
  /** The command did not run because the lock did not allow it. */
  notNow: 75,
  refused: 77,
  /** The lock was lost while the command ran. */
  lost: 123,
  maxHold: 124,
  /** Our own failure. */
  internal: 125,
  notExecutable: 126,
  notFound: 127,
} as const;

/** 128 and the number of the signal, as shells have it. */
export const SIGNAL_BASE = 128;

/** Ends the verb with a message and a code. The message is for people: one line, without the prefix `holdfast:`. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly code: number;

  /** @param code  one of `EXIT`, or 128 and a signal */
  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** An error of whoever typed the command line: 64. */
export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, message);
}
