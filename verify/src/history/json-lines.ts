/**
 * A history as text: one JSON object per line, so that a run can be written while it runs, truncated, and read again.
 *
 * JSON has no Infinity, so an instant that never came is written as null. All other values are kept.
 */
import type { HistoryRecord } from "./records.js";

/** Fields that may be Infinity. For `validUntilMs` and `expiresAtMs`, null means unknown instead. */
const MAY_NEVER_COME = new Set(["returnMs", "endedMs"]);

/** The fields that a line of each type must have. */
const REQUIRED: { readonly [Type in HistoryRecord["type"]]: readonly string[] } = {
  operation: ["id", "process", "incarnation", "lockName", "kind", "verb", "args", "callMs", "outcome", "owner"],
  lost: ["atMs", "process", "lockName", "leaseId"],
  held: ["atMs", "process", "lockName", "leaseId", "isHeld"],
  turn: ["process", "beganMs"],
  enqueued: ["atMs", "lockName", "operationId"],
  missed: ["atMs", "lockName", "operationId"],
  effect: ["resource", "sequence", "process", "token", "isAccepted", "isAcknowledged", "value"],
  "final-state": ["resource", "values"],
  observation: ["operationId", "when", "atMs", "lockName", "owner", "expiresAtMs"],
  "key-scan": ["atMs", "lockName", "owners", "isReachable"],
  fault: ["id", "beganMs", "target", "proof"],
  server: ["atMs", "name", "runId", "role", "clockMs"],
};

/** A record as one line, without the line break. */
export function writeRecord(record: HistoryRecord): string {
  return JSON.stringify(record, (key, value: unknown) =>
    MAY_NEVER_COME.has(key) && value === Number.POSITIVE_INFINITY ? null : value,
  );
}

/**
 * Parses a line.
 *
 * @throws SyntaxError  the line is not JSON, has an unknown type, or lacks a field; the message says which
 */
export function readRecord(line: string): HistoryRecord {
  const value: unknown = JSON.parse(line, (key, field: unknown) =>
    MAY_NEVER_COME.has(key) && field === null ? Number.POSITIVE_INFINITY : field,
  );
  if (!isRecord(value)) throw new SyntaxError(`Not a record of a history: ${line.slice(0, 80)}`);
  const missing = REQUIRED[value.type].filter((field) => !(field in value));
  if (missing.length > 0) throw new SyntaxError(`A record of type ${value.type} lacks ${missing.join(", ")}`);
  return value;
}

function isRecord(value: unknown): value is HistoryRecord {
  if (typeof value !== "object" || value === null || !("type" in value)) return false;
  return typeof value.type === "string" && Object.hasOwn(REQUIRED, value.type);
}

/** Serializes a history, one line per record. */
export function writeHistory(records: Iterable<HistoryRecord>): string {
  return Array.from(records, (record) => `${writeRecord(record)}\n`).join("");
}

/**
 * Parses a serialized history. Skips empty lines, and a truncated last line, which a killed recorder may leave.
 *
 * @throws SyntaxError  another line is not a record; the message has its number
 */
export function readHistory(text: string): HistoryRecord[] {
  const lines = text.split("\n");
  const cutOff = lines.pop();
  if (cutOff !== undefined && isWhole(cutOff)) lines.push(cutOff);
  return lines.flatMap((line, index) => {
    if (line.trim() === "") return [];
    try {
      return [readRecord(line)];
    } catch (error) {
      throw new SyntaxError(`Line ${index + 1}: ${(error as Error).message}`, { cause: error });
    }
  });
}

function isWhole(line: string): boolean {
  try {
    readRecord(line);
    return true;
  } catch {
    return false;
  }
}
