/** Follows the server's clock, which pages use for their countdowns. */
import type { ServerClient } from "./backend.js";
import { type ClockReading, readClock } from "./servers.js";

/**
 * Ignores smaller differences: they come from round-trip noise, and applying them would shift every instant on every
 * page.
 */
const NOISE_MS = 50;

/** Estimates the server's clock from the local clock and the last measured difference. */
export class ClockFollower {
  #skewMs = 0;

  /** The time on the first server's clock if there is a server, otherwise local time. */
  nowMs(): number {
    return Math.round(Date.now() + this.#skewMs);
  }

  /** Measures the difference again. @returns the reading; undefined without a server, or if it did not reply */
  async read([server]: readonly ServerClient[]): Promise<ClockReading | undefined> {
    // Ignores errors, because the reads of other data report whether Redis is down.
    const reading = server === undefined ? undefined : await readClock(server).catch(() => undefined);
    if (reading === undefined) return undefined;
    if (Math.abs(reading.skewMs - this.#skewMs) > NOISE_MS) this.#skewMs = reading.skewMs;
    return reading;
  }
}
