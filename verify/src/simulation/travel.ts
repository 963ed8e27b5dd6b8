/** Delays and order of data between a process and the server. */
import type { NetworkHost } from "./network-host.js";
import type { SimulatedProcess } from "./process.js";
import type { Random } from "./random.js";
import type { Weather } from "./weather.js";

/** Schedules arrivals. Data of one process and direction keeps its order unless it is delayed by a fault. */
export class Travel {
  readonly host: NetworkHost;
  readonly process: SimulatedProcess;
  readonly random: Random;
  readonly #lastArrivalMs = { request: 0, reply: 0, message: 0 };

  constructor(host: NetworkHost, process: SimulatedProcess, random: Random) {
    this.host = host;
    this.process = process;
    this.random = random;
  }

  /** The current network conditions. */
  get weather(): Weather {
    return this.host.weatherOf(this.process);
  }

  /** Arrives after everything that was sent earlier on the same path. */
  inOrder(way: "request" | "reply" | "message", weather: Weather, what: string, happen: () => void): void {
    const delayMs = this.random.chance(weather.slow)
      ? this.random.between(0, weather.slowMs)
      : this.random.between(0.05, 2);
    const atMs = Math.max(this.#lastArrivalMs[way], this.host.nowMs + delayMs);
    this.#lastArrivalMs[way] = atMs;
    this.host.plan(atMs, what, happen);
  }

  /** Arrives after that delay, independent of other data. */
  later(delayMs: number, what: string, happen: () => void): void {
    this.host.plan(this.host.nowMs + delayMs, what, happen);
  }
}
