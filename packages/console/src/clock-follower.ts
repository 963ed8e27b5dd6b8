/** The server's clock, followed by ours: what pages count down by. */
import type { ServerClient } from "./backend.js";
import { type ClockReading, readClock } from "./servers.js";

/** A difference below it is the noise of a round trip, and following it would move every instant on every page. */
const NOISE_MS = 50;

/** See the file header. */
export class ClockFollower {
  #skewMs = 0;

  /** By the first server's clock, if there is one; else by ours. */
  nowMs(): number {
    return Math.round(Date.now() + this.#skewMs);
  }

  /** Looks at the clock again. @returns what it read; undefined without a server, or one that does not say */
  async read([server]: readonly ServerClient[]): Promise<ClockReading | undefined> {
    // Whether Redis is there is for those to say who need more of it than its time.
    const reading = server === undefined ? undefined : await readClock(server).catch(() => undefined);
    if (reading === undefined) return undefined;
    if (Math.abs(reading.skewMs - this.#skewMs) > NOISE_MS) this.#skewMs = reading.skewMs;
    return reading;
  }
}
