/**
 * Replaces Node's timers and clock with those of a simulated process.
 *
 * The session takes its clock and timers from its runtime, but client libraries and their production driver do not.
 * During a run, Node's functions belong to the process whose turn it is. Outside of any process's turn they use real
 * time, which the guard reports.
 */
import type { SimulatedProcess } from "../process.js";

interface Handle {
  readonly cancel: () => void;
  unref(): Handle;
  ref(): Handle;
}

/** Virtual time for Node's own functions. */
export class VirtualTime {
  readonly #handles = new WeakSet<object>();
  #undo: (() => void) | undefined;

  /** The process whose turn it is. */
  current: SimulatedProcess | undefined;

  /** Replaces the functions. Call it between `start` and `stop` of the guard. */
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
    // Everything that has arrived by then has been delivered: a process that resumes reads its sockets before its
    // timers run.
    const soon = (callback: () => void): unknown =>
      this.current === undefined ? setImmediate(callback) : begin(callback);
    Object.assign(globalThis, { setTimeout: begin, clearTimeout: cancel, setImmediate: soon });
    performance.now = () => this.current?.monotonicMs() ?? now.call(performance);
    this.#undo = () => {
      Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate });
      performance.now = now;
    };
  }

  /** Restores the original functions. */
  stop(): void {
    this.#undo?.();
    this.#undo = undefined;
  }
}
