/** Signals that end what would go on for ever. */
import { constants } from "node:os";
import { SIGNAL_BASE } from "../frame/exit-codes.js";

const ENDING = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** Listens until `stop`. */
export interface Interruption {
  /** Aborts at the first of them. */
  readonly signal: AbortSignal;
  /** Ends it as a signal would: a key that was pressed. */
  end(): void;
  /**
   * What a verb exits with that a person watches until it is told to end: 0 after INT, which is how one ends it, and
   * otherwise 128 and the signal.
   */
  exitCode(): number;
  /** What a verb exits with that was about something: 128 and the signal, or 0 if none came. */
  signalCode(): number;
  /** Stops listening: from then on a signal does what it always does. */
  stop(): void;
}

/** Begins to listen for INT, TERM, HUP and QUIT. */
export function listenForSignals(): Interruption {
  const controller = new AbortController();
  let came: (typeof ENDING)[number] | undefined;
  const onSignal = (signal: (typeof ENDING)[number]): void => {
    came ??= signal;
    controller.abort();
  };
  for (const signal of ENDING) process.on(signal, onSignal);
  const signalCode = (): number => (came === undefined ? 0 : SIGNAL_BASE + constants.signals[came]);
  return {
    signal: controller.signal,
    end: () => controller.abort(),
    exitCode: () => (came === "SIGINT" ? 0 : signalCode()),
    signalCode,
    stop() {
      for (const signal of ENDING) process.off(signal, onSignal);
    },
  };
}
