/** The record of an operation that may still change. */
import type { Arguments, Operation, Verb } from "../history/index.js";
import type { SimulatedProcess } from "./process.js";

/** An operation that has not ended, or whose record will be corrected. */
export type Draft = { -readonly [Field in keyof Operation]: Operation[Field] };

/** The subject of an operation. */
export interface About {
  readonly process: SimulatedProcess;
  readonly lockName: string;
  readonly verb: Verb;
  readonly args?: Arguments;
  readonly owner: string;
  /** Absent for an acquire, whose lease id is its own. */
  readonly leaseId?: number;
}

/** The name of one incarnation in the history. */
export function historyName({ name, incarnation }: Pick<SimulatedProcess, "name" | "incarnation">): string {
  return `${name}.${incarnation}`;
}
