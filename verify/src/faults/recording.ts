/** Merges the files of all processes into one history. */
import { readFileSync } from "node:fs";
import type { Effect, Fault, FinalState, HistoryRecord, Operation } from "../history/records.js";

/** A line of a process's file. */
export type Line =
  | ({ readonly line: "begin" } & Omit<Operation, "type" | "returnMs" | "outcome" | "token" | "validUntilMs">)
  | ({ readonly line: "end"; readonly id: number } & Partial<Operation>)
  | { readonly line: "owner"; readonly id: number; readonly owner: string }
  | { readonly line: "record"; readonly record: HistoryRecord }
  | { readonly line: "acknowledged"; readonly resource: string; readonly value: string };

/** The records of one process. */
export interface Left {
  readonly records: readonly HistoryRecord[];
  /** Acknowledged effects, as `resource value`. */
  readonly acknowledged: ReadonlySet<string>;
}

/**
 * Reads the file of a process. An operation without an end may have happened, and never returned. A last line that a
 * kill has truncated had no effect yet, and is left out.
 *
 * @throws SyntaxError  another line is invalid
 */
export function readLeft(file: string): Left {
  return leftOf(readFileSync(file, "utf8"));
}

/** Like `readLeft`, for the content of a file. */
export function leftOf(text: string): Left {
  const lines = text.split("\n");
  // After the last line break there is nothing, or a line that a kill has truncated.
  lines.pop();
  const operations = new Map<number, Operation>();
  const records: HistoryRecord[] = [];
  const acknowledged = new Set<string>();
  lines.forEach((content, index) => {
    const line = parse(content, index);
    switch (line.line) {
      case "begin": {
        const { line: _, ...begun } = line;
        const open = { outcome: "info", returnMs: Number.POSITIVE_INFINITY, token: null, validUntilMs: null } as const;
        operations.set(line.id, { type: "operation", ...begun, ...open });
        break;
      }
      case "owner":
      case "end": {
        const { line: _, ...more } = line;
        const begun = operations.get(line.id);
        if (begun === undefined) throw new SyntaxError(`line ${index + 1} ends what never began`);
        operations.set(line.id, { ...begun, ...more });
        break;
      }
      case "record":
        records.push(line.record);
        break;
      case "acknowledged":
        acknowledged.add(`${line.resource} ${line.value}`);
        break;
      default:
        throw new SyntaxError(`line ${index + 1} is of an unknown type`);
    }
  });
  return { records: [...operations.values(), ...records], acknowledged };
}

function parse(content: string, index: number): Line {
  try {
    return JSON.parse(content) as Line;
  } catch (error) {
    throw new SyntaxError(`line ${index + 1} is not JSON`, { cause: error });
  }
}

/** The records that the run itself adds. */
export interface Around {
  readonly records: readonly HistoryRecord[];
  readonly effects: readonly Effect[];
  readonly finalStates: readonly FinalState[];
  /** The incarnations of each client: their recorded names, and the start of each. */
  readonly incarnations: readonly { readonly name: string; readonly process: string; readonly sinceMs: number }[];
}

/** Merges all records. A fault of a client refers to the incarnation that ran when the fault began. */
export function merge(left: readonly Left[], around: Around): HistoryRecord[] {
  const isAcknowledged = ({ resource, value }: Effect): boolean =>
    left.some(({ acknowledged }) => acknowledged.has(`${resource} ${value}`));
  return [
    ...left.flatMap(({ records }) => records),
    ...around.records.map((record) => (record.type === "fault" ? onIncarnation(record, around) : record)),
    ...around.effects.map((effect) => ({ ...effect, isAcknowledged: isAcknowledged(effect) })),
    ...around.finalStates,
  ];
}

function onIncarnation(fault: Fault, { incarnations }: Around): Fault {
  const ran = incarnations.filter(({ name, sinceMs }) => name === fault.target && sinceMs <= fault.beganMs).at(-1);
  return ran === undefined ? fault : { ...fault, target: ran.process };
}
