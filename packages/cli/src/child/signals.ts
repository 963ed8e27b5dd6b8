/** Signals: which are passed on, which end a wait, and what they are called. */
import { constants } from "node:os";
import { SIGNAL_BASE, usageError } from "../frame/exit-codes.js";

/** Passed on to the child, each time; an unhandled one would end us and leave the child alone. */
export const FORWARDED: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"];

/** Those that end a wait. */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]);
/** Those that mean "end", after which a child may take its time. */
const MEANT_TO_END: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGTERM", "SIGQUIT"]);

/** Whether a child that is given this signal is meant to end. */
export function isMeantToEnd(signal: NodeJS.Signals): boolean {
  return MEANT_TO_END.has(signal);
}

/** What shells report of a program that this signal ended. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return SIGNAL_BASE + constants.signals[signal];
}

/** `TERM`, `SIGTERM` or `15`. @throws CliError 64 */
export function parseSignal(flag: string, text: string): NodeJS.Signals {
  const word = text.toUpperCase();
  const byNumber = Object.entries(constants.signals).find(([, number]) => String(number) === text)?.[0];
  const name = byNumber ?? (word.startsWith("SIG") ? word : `SIG${word}`);
  if (Object.hasOwn(constants.signals, name)) return name as NodeJS.Signals;
  throw usageError(`${flag} must be a signal such as TERM, INT or 15; got "${text}"`);
}

/** A signal ended the wait, or came before there was anything to end. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`);
    this.signal = signal;
  }
}

/**
 * The signals of this process, from construction to `close`: they end the wait until somebody takes them.
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

  /** The first signal that ended the wait, if one has. */
  get interruption(): Interrupted | undefined {
    const reason: unknown = this.#waiting.signal.reason;
    return reason instanceof Interrupted ? reason : undefined;
  }

  /** Ends the wait without a signal; `waiting` aborts with that reason. */
  abandon(reason: Error): void {
    this.#waiting.abort(reason);
  }

  /** From now on signals go there, and end no wait. */
  take(taker: (signal: NodeJS.Signals) => void): void {
    this.#taker = taker;
  }

  /** From now on they do to this process what they do to any. */
  close(): void {
    for (const signal of FORWARDED) process.off(signal, this.#handler);
  }

  #arrived(signal: NodeJS.Signals): void {
    if (this.#taker !== undefined) this.#taker(signal);
    else if (ENDING.has(signal)) this.#waiting.abort(new Interrupted(signal));
  }
}
