/** What can go wrong in a run, as its plan has it. */
import type { Weather } from "./weather.js";

/** One thing that goes wrong. */
export type FaultEvent = { readonly id: number; readonly atMs: number; readonly process: number } & (
  | { readonly what: "weather"; readonly forMs: number; readonly weather: Weather }
  | { readonly what: "cut-commands"; readonly backInMs: number; readonly resends: boolean }
  | { readonly what: "cut-inbox"; readonly backInMs: number; readonly goneInMs: number }
  | { readonly what: "freeze"; readonly forMs: number; readonly suspended: boolean }
  /**
   * Stands still at the next grant by message, `lagMs` after the server has sent it or the process has heard it. In the second
   * case its caller has the lease by then: the event loop is blocked.
   */
  | { readonly what: "stall"; readonly from: "pushed" | "heard"; readonly lagMs: number; readonly forMs: number }
  | { readonly what: "kill"; readonly backInMs: number; readonly goneInMs: number }
  /**
   * Is killed when the next `run` in it has settled that released in the background. Unless `isSent`, what it sent in that
   * instant has not left it yet.
   */
  | { readonly what: "crash-after-run"; readonly isSent: boolean; readonly backInMs: number; readonly goneInMs: number }
  | { readonly what: "step-wall"; readonly byMs: number }
  | { readonly what: "flush-scripts" }
  | { readonly what: "freeze-server"; readonly forMs: number }
  | { readonly what: "restart-server"; readonly forMs: number; readonly keeps: "all" | "some" | "none" }
  | { readonly what: "step-server-clock"; readonly byMs: number }
  | { readonly what: "freeze-server-clock"; readonly forMs: number }
  /** Both clocks of the host go at this rate from then on, in milliseconds per millisecond of the server. */
  | { readonly what: "drift"; readonly rate: number }
  /**
   * For `forMs` nothing gets through the command connection; then it is given up for another one, and what was sent over
   * the old one arrives `lingersMs` later, overtaken by all that the new one has brought meanwhile.
   */
  | {
      readonly what: "overtake";
      readonly forMs: number;
      readonly backInMs: number;
      readonly resends: boolean;
      readonly lingersMs: number;
    }
);
