/**
 * Reports a run: lines for people on stderr, or JSON Lines with `--json`, and one result line on `--status-fd`.
 *
 * The report never touches stdin and stdout, because they belong to the child. Even accessing one of these streams can
 * change how a pipe behaves.
 */
import { writeSync } from "node:fs";
import { jsonLine, notify } from "../../frame/output.js";
import type { Streams } from "../../frame/streams.js";
import { checkStatusFd } from "./status-fd.js";

/** How a run ended. */
export type Outcome =
  | "ran"
  | "busy"
  | "timeout"
  | "paused"
  | "already-done"
  | "grace"
  | "lost"
  | "max-hold"
  | "unreachable"
  | "interrupted"
  | "mismatch"
  | "refused"
  | "failed";

/** The final result of a run. */
export interface Result {
  readonly outcome: Outcome;
  readonly code: number;
  readonly childCode: number | null;
  readonly childSignal: NodeJS.Signals | null;
  readonly token: number | null;
  readonly waitedMs: number;
  readonly heldMs: number | null;
  /** The holder that blocked this run, if there was one. */
  readonly holder: object | null;
  /**
   * With failover grace, when grants resume; with `already-done`, when the next run may start. Server time in ms since
   * 1970.
   */
  readonly resumesAtMs?: number;
}

/** Events before the result. */
export type RunEvent = "waiting" | "granted" | "at-risk" | "lost" | "signalled" | "child-exited" | "released";

/** The report of one run. */
export class Report {
  readonly #streams: Streams;
  readonly #how: { readonly isJson: boolean; readonly isQuiet: boolean; readonly isVerbose: boolean };
  readonly #name: string;
  readonly #statusFd: number | undefined;

  /** @throws CliError 64  `statusFd` is not open */
  constructor(
    streams: Streams,
    how: {
      readonly name: string;
      readonly isJson: boolean;
      readonly isQuiet: boolean;
      readonly isVerbose: boolean;
      readonly statusFd: number | undefined;
    },
  ) {
    this.#streams = streams;
    this.#how = how;
    this.#name = how.name;
    this.#statusFd = how.statusFd;
    if (how.statusFd !== undefined) checkStatusFd(how.statusFd);
  }

  /** Whether intermediate steps are reported at all. */
  get isTalkative(): boolean {
    return this.#how.isJson || (!this.#how.isQuiet && (this.#how.isVerbose || this.#streams.stderr.isTTY === true));
  }

  /** Reports an event to programs. */
  event(event: RunEvent, facts: object): void {
    if (this.#how.isJson) this.#streams.stderr.write(jsonLine({ event, name: this.#name, atMs: Date.now(), ...facts }));
  }

  /** Reports to people. Programs receive the events instead. */
  say(message: string): void {
    if (!this.#how.isJson) notify(this.#streams, this.#how, message);
  }

  /** Reports to people who passed `--verbose`. */
  detail(message: string): void {
    if (this.#how.isVerbose) this.say(message);
  }

  /** Like `say`, but `--quiet` does not silence it, because a lost lock must always be reported. */
  warn(message: string): void {
    if (!this.#how.isJson) notify(this.#streams, { isQuiet: false }, message);
  }

  /** Reports the final result. */
  result(result: Result): void {
    const line = jsonLine({ event: "result", name: this.#name, ...result });
    if (this.#how.isJson) this.#streams.stderr.write(line);
    if (this.#statusFd === undefined) return;
    try {
      writeSync(this.#statusFd, line);
    } catch {
      // The reader has gone away. The exit code still carries the essential result.
    }
  }
}
