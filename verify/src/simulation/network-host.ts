/** What travels, and what the network asks the world, and tells it. */
import type { Reply, Script } from "holdfast";
import type { Host, SimulatedProcess } from "./process.js";
import type { Weather } from "./weather.js";

/** One request for a script. */
export interface Call {
  readonly id: number;
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  /** When its caller sent it. */
  readonly calledMs: number;
}

/** The world as the network sees it. */
export interface NetworkHost extends Host {
  /** Until when the server answers nothing; what arrives before waits, or is lost if it is down. */
  readonly serverFrozenUntilMs: number;
  readonly isServerDown: boolean;
  weatherOf(process: SimulatedProcess): Weather;
  /** The script as it is to be run, which is another one in a test of the simulation itself. */
  scriptOf(script: Script): Script;
  /** A process has sent a request. */
  sent(process: SimulatedProcess, call: Call): void;
  /** A request was carried out. */
  ran(process: SimulatedProcess, call: Call, reply: Reply): void;
  /** A reply, or a message, has reached the process. */
  heard(process: SimulatedProcess, what: { readonly call: Call; readonly reply: Reply } | string): void;
  /** The server has sent a message to the process. */
  pushed(process: SimulatedProcess, message: string): void;
  /** A process has another connection for its scripts: what has no answer is sent over it, again or for the first time. */
  cameBack(process: SimulatedProcess): void;
  /** A process that listened did not for a while, or missed a message. */
  deafened(process: SimulatedProcess): void;
}
