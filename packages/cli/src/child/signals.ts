/** Signals: which ones are forwarded, which ones end a wait, and how they are named. */
import { constants } from "node:os";
import { SIGNAL_BASE, usageError } from "../frame/exit-codes.js";

/**
 * Signals that are forwarded to the child whenever they arrive. Without a handler, such a signal would end this process
 * and leave the child unsupervised.
 */
export const FORWARDED: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"];

/** Signals that end a wait for the lock. */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]);
/** Signals that ask a child to end. The child may then take its time. */
const MEANT_TO_END: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGTERM", "SIGQUIT"]);

/** Whether this signal asks a child to end. */
export function isMeantToEnd(signal: NodeJS.Signals): boolean {
  return MEANT_TO_END.has(signal);
}

/** The exit code that shells report for a program that this signal ended. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return SIGNAL_BASE + constants.signals[signal];
}

/** Accepts `TERM`, `SIGTERM` or `15`. @throws CliError 64 */
export function parseSignal(flag: string, text: string): NodeJS.Signals {
  const word = text.toUpperCase();
  const byNumber = Object.entries(constants.signals).find(([, number]) => String(number) === text)?.[0];
  const name = byNumber ?? (word.startsWith("SIG") ? word : `SIG${word}`);
  if (Object.hasOwn(constants.signals, name)) return name as NodeJS.Signals;
  throw usageError(`${flag} must be a signal such as TERM, INT or 15; got "${text}"`);
}

/** A signal ended the wait, or arrived before there was a child to forward it to. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`);
    this.signal = signal;
  }
}

/**
 * Handles the signals of this process from construction to `close`. Signals end the wait until a caller takes them over
 * with `take`.
 */
export class SignalDesk {
  readonly #waiting = new AbortController();
  readonly #handler = (signal: NodeJS.Signals): void => this.#arrived(signal);
  #taker: ((signal: NodeJS.Signals) => void) | undefined;

  constructor() {
    for (const signal of FORWARDED) process.on(signal, this.#handler);
  }

  /** Aborts with `Interrupted` when a signal ends the wait. */
  get waiting(): AbortSignal {
    return this.#waiting.signal;
  }

  /** The first signal that ended the wait; undefined if none has. */
  get interruption(): Interrupted | undefined {
    const reason: unknown = this.#waiting.signal.reason;
    return reason instanceof Interrupted ? reason : undefined;
  }

  /** Ends the wait without a signal. `waiting` aborts with the given reason. */
  abandon(reason: Error): void {
    this.#waiting.abort(reason);
  }

  /** Sends all later signals to `taker`. They no longer end the wait. */
  take(taker: (signal: NodeJS.Signals) => void): void {
    this.#taker = taker;
  }

  /** Restores the default effect of these signals on this process. */
  close(): void {
    for (const signal of FORWARDED) process.off(signal, this.#handler);
  }

  #arrived(signal: NodeJS.Signals): void {
    if (this.#taker !== undefined) this.#taker(signal);
    else if (ENDING.has(signal)) this.#waiting.abort(new Interrupted(signal));
  }
}
