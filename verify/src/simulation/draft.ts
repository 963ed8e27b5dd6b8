/** The record of an operation while it may still change. */
import type { Arguments, Operation, Verb } from "../history/index.js";
import type { SimulatedProcess } from "./process.js";

/** An operation that has not come to its end, or will be corrected. */
export type Draft = { -readonly [Field in keyof Operation]: Operation[Field] };

/** What an operation is about. */
export interface About {
  readonly process: SimulatedProcess;
  readonly lockName: string;
  readonly verb: Verb;
  readonly args?: Arguments;
  readonly owner: string;
  /** Absent for an acquire, which is about its own lease. */
  readonly leaseId?: number;
}

/** Name of one incarnation in a history. */
export function historyName({ name, incarnation }: Pick<SimulatedProcess, "name" | "incarnation">): string {
  return `${name}.${incarnation}`;
}
