import type { Profile } from "../worker/orders.js";

/** The processor time that a contestant used. */
export interface Spent {
  readonly operations: number;
  /** One per process. */
  readonly profiles: readonly Profile[];
  /** Processor time of all servers. */
  readonly serverUs: number;
}
