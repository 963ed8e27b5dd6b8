/**
 * What a run tells: one line for people on stderr, or JSON Lines with `--json`; and one result line on `--status-fd`.
 *
 * stdout and stdin are the child's, and are not touched here: even to look at a stream may change how a pipe behaves.
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

/** The last word of a run. */
export interface Result {
  readonly outcome: Outcome;
  readonly code: number;
  readonly childCode: number | null;
  readonly childSignal: NodeJS.Signals | null;
  readonly token: number | null;
  readonly waitedMs: number;
  readonly heldMs: number | null;
  /** Who is in the way, where somebody is. */
  readonly holder: object | null;
  /** Of `grace`: when grants resume. */
  readonly resumesAtMs?: number;
}

/** Events before the last one. */
export type RunEvent = "waiting" | "granted" | "at-risk" | "lost" | "signalled" | "child-exited" | "released";

/** See the file header. */
export class Report {
  readonly #streams: Streams;
  readonly #how: { readonly isJson: boolean; readonly isQuiet: boolean; readonly isVerbose: boolean };
  readonly #name: string;
  readonly #statusFd: number | undefined;

  /** @throws CliError 64  nothing is open at `statusFd` */
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

  /** Whether anybody hears of the steps in between. */
  get isTalkative(): boolean {
    return this.#how.isJson || (!this.#how.isQuiet && (this.#how.isVerbose || this.#streams.stderr.isTTY === true));
  }

  /** For programs. */
  event(event: RunEvent, facts: object): void {
    if (this.#how.isJson) this.#streams.stderr.write(jsonLine({ event, name: this.#name, atMs: Date.now(), ...facts }));
  }

  /** For people; programs have the events. */
  say(message: string): void {
    if (!this.#how.isJson) notify(this.#streams, this.#how, message);
  }

  /** For people who asked for more. */
  detail(message: string): void {
    if (this.#how.isVerbose) this.say(message);
  }

  /** As `say`, and not silenced: a lock that was lost is nothing to be quiet about. */
  warn(message: string): void {
    if (!this.#how.isJson) notify(this.#streams, { isQuiet: false }, message);
  }

  /** The last word. */
  result(result: Result): void {
    const line = jsonLine({ event: "result", name: this.#name, ...result });
    if (this.#how.isJson) this.#streams.stderr.write(line);
    if (this.#statusFd === undefined) return;
    try {
      writeSync(this.#statusFd, line);
    } catch {
      // Its reader has gone, and the exit code says what can be said in one number.
    }
  }
}
