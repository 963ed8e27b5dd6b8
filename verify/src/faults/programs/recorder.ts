/**
 * Records the operations of a process as they happen, so that a kill loses none that had begun.
 *
 * A line is written before an operation is called, and another when it has settled; an operation without a second
 * line may have happened. Every line is written before the process continues, and the kernel keeps it when the
 * process is gone.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import type { HistoryRecord, Operation } from "../../history/records.js";
import type { Line } from "../recording.js";
import { monotonicMs } from "../topology/monotonic.js";
import type { ClientSettings } from "./messages.js";

/** What is known about an operation when it is called. */
export type Begun = Pick<Operation, "lockName" | "kind" | "verb" | "args" | "owner"> & {
  /** Absent for an acquire, which begins a new lease. */
  readonly leaseId?: number;
};

/** What is known about it when it has settled. */
export type Ended = Pick<Operation, "outcome"> &
  // `callMs` for an operation that turns out to have begun before it was recorded.
  Partial<
    Pick<
      Operation,
      "refusal" | "owner" | "token" | "validUntilMs" | "answeredMs" | "result" | "index" | "args" | "callMs"
    >
  > & {
    readonly returnMs: number;
  };

/** The process and file of the records. */
export type RecorderSettings = Pick<ClientSettings, "process" | "incarnation" | "file" | "idBase">;

/** Writes the records of a process. */
export class Recorder {
  readonly #settings: RecorderSettings;
  readonly #file: number;
  #lastId: number;

  constructor(settings: RecorderSettings) {
    this.#settings = settings;
    this.#file = openSync(settings.file, "a");
    this.#lastId = settings.idBase;
  }

  /** Records that an operation is called now. @returns its id */
  begin({ leaseId, ...begun }: Begun): number {
    this.#lastId += 1;
    const id = this.#lastId;
    const { process, incarnation } = this.#settings;
    const callMs = monotonicMs();
    this.#write({ line: "begin", id, process, incarnation, ...begun, leaseId: leaseId ?? id, callMs });
    return id;
  }

  /** Records the owner of an operation, when it is known. */
  owner(id: number, owner: string): void {
    this.#write({ line: "owner", id, owner });
  }

  /** Records that it has settled. */
  end(id: number, ended: Ended): void {
    this.#write({ line: "end", id, ...ended });
  }

  /** Adds another record. */
  add(record: HistoryRecord): void {
    this.#write({ line: "record", record });
  }

  /** Records that the writer of this value received the reply that it was accepted. */
  acknowledged(resource: string, value: string): void {
    this.#write({ line: "acknowledged", resource, value });
  }

  /** Closes the file. */
  close(): void {
    closeSync(this.#file);
  }

  #write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}
