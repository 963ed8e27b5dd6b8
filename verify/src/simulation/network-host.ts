/** The requests of the simulated network, and its interface to the world. */
import type { Reply, Script } from "holdfast";
import type { Host, SimulatedProcess } from "./process.js";
import type { Weather } from "./weather.js";

/** One script request. */
export interface Call {
  readonly id: number;
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  /** When the caller sent it. */
  readonly calledMs: number;
}

/** The world as the network sees it. */
export interface NetworkHost extends Host {
  /** The end of the server's freeze. Requests that arrive earlier wait, or are lost if the server is down. */
  readonly serverFrozenUntilMs: number;
  readonly isServerDown: boolean;
  weatherOf(process: SimulatedProcess): Weather;
  /** The script to run, which a test of the simulation may replace. */
  scriptOf(script: Script): Script;
  /** A process has sent a request. */
  sent(process: SimulatedProcess, call: Call): void;
  /** A request was executed. */
  ran(process: SimulatedProcess, call: Call, reply: Reply): void;
  /** A reply or a message has reached the process. */
  heard(process: SimulatedProcess, what: { readonly call: Call; readonly reply: Reply } | string): void;
  /** The server has sent a message to the process. */
  pushed(process: SimulatedProcess, message: string): void;
  /** A process has a new command connection, on which it sends everything that has no reply yet. */
  cameBack(process: SimulatedProcess): void;
  /** A subscribed process was not reachable for a while, or missed a message. */
  deafened(process: SimulatedProcess): void;
}
