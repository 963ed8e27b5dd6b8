/** Runs the doctor on request and keeps its last findings. */
import type { DoctorAnswer } from "./api.js";
import { HttpProblem } from "./problem.js";
import type { StoreLink } from "./store-link.js";

/** The minimum interval between runs, because each run makes a few hundred round trips. */
const EVERY_MS = 10_000;

/** Runs the doctor and keeps its findings. */
export class DoctorRuns {
  readonly #link: StoreLink;
  readonly #now: () => number;
  #ranAtMs: number | null = null;
  #checks: DoctorAnswer["checks"] = [];
  #running: Promise<void> | undefined;

  constructor(link: StoreLink, now: () => number) {
    this.#link = link;
    this.#now = now;
  }

  /** The findings of the last run. */
  get last(): Omit<DoctorAnswer, "v" | "atMs"> {
    return { ranAtMs: this.#ranAtMs, isRunning: this.#running !== undefined, checks: this.#checks };
  }

  /**
   * Runs the doctor, or waits for the current run.
   *
   * @throws HttpProblem  429 it has just run, 501 there is no doctor, 503 Redis is down
   */
  async run(): Promise<void> {
    const waitMs = this.#ranAtMs === null ? 0 : this.#ranAtMs + EVERY_MS - this.#now();
    if (this.#running === undefined && waitMs > 0 && waitMs <= EVERY_MS) {
      const seconds = Math.ceil(waitMs / 1_000);
      const headers = { "Retry-After": String(seconds) };
      throw new HttpProblem(429, "busy", `The doctor ran just now. Try again in ${seconds} s.`, { headers });
    }
    this.#running ??= this.#examine().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async #examine(): Promise<void> {
    this.#checks = await this.#link.use(async ({ examine }) => {
      if (examine === undefined)
        throw new HttpProblem(501, "unsupported", "This console was mounted without a doctor: run holdfast doctor.");
      return examine();
    });
    this.#ranAtMs = this.#now();
  }
}
