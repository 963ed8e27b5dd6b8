/**
 * The timers and the clock of Node, as one simulated process has them.
 *
 * The session takes its clocks and timers from its runtime; a client library does not, and neither does the production code
 * that drives one. While a run is on they are those of the process whose turn it is. What asks for time in nobody's turn
 * gets the machine's, and the guard notes that.
 */
import type { SimulatedProcess } from "../process.js";

interface Handle {
  readonly cancel: () => void;
  unref(): Handle;
  ref(): Handle;
}

/** See the file header. */
export class VirtualTime {
  readonly #handles = new WeakSet<object>();
  #undo: (() => void) | undefined;

  /** Whose turn it is. */
  current: SimulatedProcess | undefined;

  /** From now on time is that of the process whose turn it is. Between `start` and `stop` of the guard. */
  start(): void {
    const { setTimeout, clearTimeout, setImmediate } = globalThis;
    const { now } = performance;
    const begin = (callback: () => void, delayMs = 0): unknown => {
      if (this.current === undefined) return setTimeout(callback, delayMs);
      const timer = this.current.startTimer(callback, delayMs, "client");
      const handle: Handle = { cancel: () => timer.cancel(), unref: () => handle, ref: () => handle };
      this.#handles.add(handle);
      return handle;
    };
    const cancel = (handle: unknown): void => {
      if (typeof handle === "object" && handle !== null && this.#handles.has(handle)) (handle as Handle).cancel();
      else clearTimeout(handle as NodeJS.Timeout);
    };
    // What has come by then has been delivered: a simulated process that stands still reads what lies there before its timers.
    const soon = (callback: () => void): unknown =>
      this.current === undefined ? setImmediate(callback) : begin(callback);
    Object.assign(globalThis, { setTimeout: begin, clearTimeout: cancel, setImmediate: soon });
    performance.now = () => this.current?.monotonicMs() ?? now.call(performance);
    this.#undo = () => {
      Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate });
      performance.now = now;
    };
  }

  /** Time is the machine's again. */
  stop(): void {
    this.#undo?.();
    this.#undo = undefined;
  }
}
