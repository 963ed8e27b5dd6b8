/**
 * Writes what a process does while it does it, so that a kill leaves all that had begun.
 *
 * A line is written before an operation is called and another when it has settled; what has no second line may have
 * happened. Every line is in the file before anything goes on: the kernel keeps it when the process is gone.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import type { HistoryRecord, Operation } from "../../history/records.js";
import type { Line } from "../recording.js";
import { monotonicMs } from "../topology/monotonic.js";
import type { ClientSettings } from "./messages.js";

/** What is known of an operation when it is called. */
export type Begun = Pick<Operation, "lockName" | "kind" | "verb" | "args" | "owner"> & {
  /** Absent for an acquire, which begins a lease of its own. */
  readonly leaseId?: number;
};

/** What is known of it afterwards. */
export type Ended = Pick<Operation, "outcome"> &
  // `callMs` of what turns out to have begun before it was called.
  Partial<
    Pick<
      Operation,
      "refusal" | "owner" | "token" | "validUntilMs" | "answeredMs" | "result" | "index" | "args" | "callMs"
    >
  > & {
    readonly returnMs: number;
  };

/** Whose records these are, and where they go. */
export type RecorderSettings = Pick<ClientSettings, "process" | "incarnation" | "file" | "idBase">;

/** See the file header. */
export class Recorder {
  readonly #settings: RecorderSettings;
  readonly #file: number;
  #lastId: number;

  constructor(settings: RecorderSettings) {
    this.#settings = settings;
    this.#file = openSync(settings.file, "a");
    this.#lastId = settings.idBase;
  }

  /** An operation is called now. @returns its id */
  begin({ leaseId, ...begun }: Begun): number {
    this.#lastId += 1;
    const id = this.#lastId;
    const { process, incarnation } = this.#settings;
    const callMs = monotonicMs();
    this.#write({ line: "begin", id, process, incarnation, ...begun, leaseId: leaseId ?? id, callMs });
    return id;
  }

  /** The owner of an operation that has begun is known by now. */
  owner(id: number, owner: string): void {
    this.#write({ line: "owner", id, owner });
  }

  /** It has settled. */
  end(id: number, ended: Ended): void {
    this.#write({ line: "end", id, ...ended });
  }

  /** Something else that happened. */
  add(record: HistoryRecord): void {
    this.#write({ line: "record", record });
  }

  /** The writer of this value heard that it was accepted. */
  acknowledged(resource: string, value: string): void {
    this.#write({ line: "acknowledged", resource, value });
  }

  /** No more lines. */
  close(): void {
    closeSync(this.#file);
  }

  #write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}
