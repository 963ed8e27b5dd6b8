/** What a system that collects numbers does for `LockMeter`. */
import type { CommandEvent } from "../../internal.js";
import type { CounterName, HistogramName } from "./definitions.js";

/** Whose number it is. */
export interface Labels {
  readonly group: string;
  readonly kind: string;
  /** Which side of a read-write lock; absent for all else. */
  readonly mode?: "read" | "write" | undefined;
}

/** Which script it was, where it went if that is known, and what sort of error it ended with, if it was not answered. */
export interface CommandLabels {
  readonly script: string;
  readonly server: CommandEvent["server"];
  readonly errorType: string | undefined;
}

/** Where numbers go. */
export interface Sink {
  /** @param by  0 to let it be seen that there is none */
  add(counter: CounterName, labels: Labels, by: number, value?: string): void;
  record(histogram: HistogramName, labels: Labels, seconds: number, value: string): void;
  /** A script was called. */
  command(told: CommandLabels, seconds: number): void;
}
