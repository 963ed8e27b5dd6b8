/** The faults that a plan may contain. */
import type { Weather } from "./weather.js";

/** One fault. */
export type FaultEvent = { readonly id: number; readonly atMs: number; readonly process: number } & (
  | { readonly what: "weather"; readonly forMs: number; readonly weather: Weather }
  | { readonly what: "cut-commands"; readonly backInMs: number; readonly resends: boolean }
  | { readonly what: "cut-inbox"; readonly backInMs: number; readonly goneInMs: number }
  | { readonly what: "freeze"; readonly forMs: number; readonly suspended: boolean }
  /**
   * Freezes at the next grant by message, `lagMs` after the server has sent it or the process has received it. In the
   * second case its caller already has the lease, and the event loop is blocked.
   */
  | { readonly what: "stall"; readonly from: "pushed" | "heard"; readonly lagMs: number; readonly forMs: number }
  | { readonly what: "kill"; readonly backInMs: number; readonly goneInMs: number }
  /**
   * Is killed when the next `run` with a background release has settled. Unless `isSent`, what the process sent in
   * that instant is lost.
   */
  | { readonly what: "crash-after-run"; readonly isSent: boolean; readonly backInMs: number; readonly goneInMs: number }
  | { readonly what: "step-wall"; readonly byMs: number }
  | { readonly what: "flush-scripts" }
  | { readonly what: "freeze-server"; readonly forMs: number }
  | { readonly what: "restart-server"; readonly forMs: number; readonly keeps: "all" | "some" | "none" }
  | { readonly what: "step-server-clock"; readonly byMs: number }
  | { readonly what: "freeze-server-clock"; readonly forMs: number }
  /** From then on, both clocks of the host run at this rate, in ms per ms of the server's clock. */
  | { readonly what: "drift"; readonly rate: number }
  /**
   * For `forMs`, no data passes through the command connection. Then it is replaced by a new one, and the data of the
   * old one arrives `lingersMs` later, after everything that the new one has delivered in the meantime.
   */
  | {
      readonly what: "overtake";
      readonly forMs: number;
      readonly backInMs: number;
      readonly resends: boolean;
      readonly lingersMs: number;
    }
);
