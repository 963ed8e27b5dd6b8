/** What a process knows about the runs of servers, and the script texts that name a run. */
import { type Script, type ScriptText, sha1Of } from "../core/store.js";

/** A period in which one server process is master without interruption. */
export interface Run {
  readonly id: string;
  /** Its quiet time is over, or it never needed one. Never becomes false again. */
  isSettled: boolean;
  /** When the last question that it answered was sent; -Infinity if that answer no longer counts. */
  heardAtMs: number;
  /** The longest lease that its marker knows, in ms. `reportedAtMs` is when it was last reported. */
  reportedMs: number;
  reportedAtMs: number;
  /** When its quiet time ends; -Infinity if it may grant. */
  quietUntilMs: number;
  /** The texts of scripts that grant, as loaded for this run. */
  readonly texts: Map<Script, ScriptText>;
}

/** The most runs to remember. A cluster has one current run per master, and older ones are useless. */
const MOST_RUNS = 1_000;

/** All known runs. */
export class Runs {
  readonly #byId = new Map<string, Run>();
  readonly #onForgotten: () => void;

  /** @param onForgotten  called when all runs were forgotten because there were too many */
  constructor(onForgotten: () => void) {
    this.#onForgotten = onForgotten;
  }

  /** Returns the run with this id, or creates it. */
  of(id: string): Run {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    if (this.#byId.size >= MOST_RUNS) {
      this.#byId.clear();
      this.#onForgotten();
    }
    const nothing = {
      isSettled: false,
      heardAtMs: -Infinity,
      reportedMs: 0,
      reportedAtMs: -Infinity,
      quietUntilMs: -Infinity,
    };
    const run: Run = { id, ...nothing, texts: new Map() };
    this.#byId.set(id, run);
    return run;
  }

  /** Discards earlier answers of all runs. */
  serverMayHaveChanged(): void {
    for (const run of this.#byId.values()) run.heardAtMs = -Infinity;
  }
}

/** The text of a script that grants, for servers that may grant: it names the run. */
export function textFor(script: Script, { id, texts }: Run): ScriptText {
  let text = texts.get(script);
  if (text === undefined) {
    text = scriptText(`${script.source}\n-- in ${id}`);
    texts.set(script, text);
  }
  return text;
}

/** A text in the script cache of a server. It records that the server may grant in this run, for markers with this name. */
export function flagOf({ id }: Run, marker: string): ScriptText {
  return scriptText(`-- holdfast ${marker} is settled in ${id}\nreturn 1`);
}

function scriptText(source: string): ScriptText {
  return { source, sha1: sha1Of({ source }) };
}
