/** The interface between `LockMeter` and a metrics library. */
import type { CommandEvent } from "holdfast/internal";
import type { CounterName, HistogramName } from "./definitions.js";

/** The labels of a measurement. */
export interface Labels {
  readonly group: string;
  readonly kind: string;
  /** The side of a read-write lock. Absent for other kinds. */
  readonly mode?: "read" | "write" | undefined;
}

/** The labels of a script call: the script, the server if known, and the error type if the server did not reply. */
export interface CommandLabels {
  readonly script: string;
  readonly server: CommandEvent["server"];
  readonly errorType: string | undefined;
}

/** Records measurements in a metrics library. */
export interface Sink {
  /**
   * Adds to a counter.
   *
   * @param by     0 creates the series, so that it shows a zero instead of no data
   * @param value  the value of the counter's own label
   */
  add(counter: CounterName, labels: Labels, by: number, value?: string): void;
  /** Records a duration in a histogram. @param value  the value of the histogram's own label */
  record(histogram: HistogramName, labels: Labels, seconds: number, value: string): void;
  /** Records the duration of a script call. */
  command(labels: CommandLabels, seconds: number): void;
}
