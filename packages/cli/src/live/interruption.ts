/** Handles the signals that end a verb, for verbs that otherwise run forever. */
import { constants } from "node:os";
import { SIGNAL_BASE } from "../frame/exit-codes.js";

const ENDING = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** Handles signals until `stop` is called. */
export interface Interruption {
  /** Aborts at the first signal. */
  readonly signal: AbortSignal;
  /** Ends the verb without a signal, for example when the user presses a key. */
  end(): void;
  /**
   * The exit code of a verb that runs until the user ends it: 0 without a signal or after INT, which is the usual way
   * to end it; otherwise 128 plus the signal.
   */
  exitCode(): number;
  /** The exit code of a verb that has a task: 128 plus the signal, or 0 without a signal. */
  signalCode(): number;
  /** Stops handling signals. From then on, signals have their default effect. */
  stop(): void;
}

/** Starts handling INT, TERM, HUP and QUIT. */
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
