/** The exit codes of every verb, and the error that carries one. */

/** The exit codes of `holdfast` itself. A command that it runs has its own codes. */
export const EXIT = {
  done: 0,
  /** The result is negative: not held, no leader, not changed, or problems found. */
  no: 1,
  usage: 64,
  /** The name is in use as another kind or with another number of permits, or the key was not written by Holdfast. */
  otherKind: 65,
  /** Redis, or a majority, cannot be reached, or the outcome is unknown. This code never means "busy". */
  unreachable: 69,
  /** The command did not run because the lock did not allow it. */
  notNow: 75,
  refused: 77,
  /** The lock was lost while the command ran. */
  lost: 123,
  maxHold: 124,
  /** An internal error of `holdfast`. */
  internal: 125,
  notExecutable: 126,
  notFound: 127,
} as const;

/** The base of exit codes for signals: shells report 128 plus the number of the signal. */
export const SIGNAL_BASE = 128;

/**
 * Ends the verb with a message and an exit code. The message is one line for people, without the prefix `holdfast:`.
 */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly code: number;

  /** @param code  one of `EXIT`, or 128 plus the number of a signal */
  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A mistake in the command line: exit code 64. */
export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, message);
}
