import type { Holder } from "holdfast";
import type { Outcome } from "./report.js";

/** The lock did not allow the command to run, and nothing is held. The exit code is 75 or the value of `-E`. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly outcome: Outcome;
  readonly holder: Holder | undefined;
  /**
   * With failover grace, when grants resume; with `already-done`, when the next run may start. Server time in ms since
   * 1970.
   */
  readonly resumesAtMs: number | undefined;
  /** A second line: the state of the holder, and what to do. */
  advice: string | undefined;

  /** @param message  one line, without the prefix `holdfast:` */
  constructor(outcome: Outcome, message: string, facts: { holder?: Holder | undefined; resumesAtMs?: number } = {}) {
    super(message);
    this.outcome = outcome;
    this.holder = facts.holder;
    this.resumesAtMs = facts.resumesAtMs;
  }
}
