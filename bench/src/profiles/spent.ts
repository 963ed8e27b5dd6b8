import type { Profile } from "../worker/orders.js";

/** What a contestant used. */
export interface Spent {
  readonly operations: number;
  /** Of each process. */
  readonly profiles: readonly Profile[];
  /** Processor time of all servers. */
  readonly serverUs: number;
}
