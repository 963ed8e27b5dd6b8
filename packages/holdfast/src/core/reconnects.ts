/**
 * When to ask the server after a connection came back: at once, unless it is lost again and again.
 *
 * A proxy may accept connections and reset each one at the first request. If every waiter and holder asked at each reconnect, the
 * client and the proxy would keep each other busy with hundreds of connections a second.
 */
import type { Runtime } from "./runtime.js";
import { SharedTimer } from "./shared-timer.js";

/** A connection that was not lost for this long is not in trouble. */
const CALM_MS = 10_000;
/** Doubled with each reconnect in between. */
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2_000;

/** See the file header. One for each kind of connection. */
export class Reconnects {
  readonly #runtime: Runtime;
  readonly #tell: () => void;
  readonly #timer: SharedTimer;
  #lastAtMs = -Infinity;
  #pauseMs = 0;

  /** @param tell  called for one reconnect, or for several in a row */
  constructor(runtime: Runtime, tell: () => void) {
    this.#runtime = runtime;
    this.#tell = tell;
    this.#timer = new SharedTimer(runtime, tell);
  }

  /** The connection came back. */
  happened(): void {
    const nowMs = this.#runtime.monotonicMs();
    const isCalm = nowMs - this.#lastAtMs > CALM_MS;
    this.#lastAtMs = nowMs;
    if (isCalm) {
      this.#pauseMs = 0;
      this.#timer.cancel();
      this.#tell();
    } else if (!this.#timer.isRunning) {
      this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, PAUSE_MIN_MS), PAUSE_MAX_MS);
      // So that processes do not ask at the same moment.
      this.#timer.start(this.#pauseMs * (0.5 + this.#runtime.random() / 2));
    }
  }

  /** Nobody is told any more. */
  close(): void {
    this.#timer.cancel();
  }
}
