/** What a process knows of the runs of the servers of a cluster, and the texts that name a run. */
import { type Script, type ScriptText, sha1Of } from "../core/store.js";

/** A time in which one process is master without a break. */
export interface Run {
  readonly id: string;
  /** Its quiet time is over, or there never was a reason for one. That stays so. */
  isSettled: boolean;
  /** When the last question was sent that it has answered; -Infinity if that counts no more. */
  heardAtMs: number;
  /** The longest lease that its marker knows of, in ms, and since when. */
  toldMs: number;
  toldAtMs: number;
  /** Until when it may not grant; -Infinity if it may. */
  quietUntilMs: number;
  /** Scripts that grant, as it knows them. */
  readonly texts: Map<Script, ScriptText>;
}

/** Runs that are remembered. A cluster has as many as it has masters; old ones are of no use. */
const MOST_RUNS = 1_000;

/** All runs that were heard of. */
export class Runs {
  readonly #byId = new Map<string, Run>();
  readonly #onForgotten: () => void;

  /** @param onForgotten  called when all were forgotten, since there were too many */
  constructor(onForgotten: () => void) {
    this.#onForgotten = onForgotten;
  }

  /** The run of that id, a new one if nobody has heard of it. */
  of(id: string): Run {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    if (this.#byId.size >= MOST_RUNS) {
      this.#byId.clear();
      this.#onForgotten();
    }
    const nothing = { isSettled: false, heardAtMs: -Infinity, toldMs: 0, toldAtMs: -Infinity, quietUntilMs: -Infinity };
    const run: Run = { id, ...nothing, texts: new Map() };
    this.#byId.set(id, run);
    return run;
  }

  /** What they said counts no more. */
  serverMayHaveChanged(): void {
    for (const run of this.#byId.values()) run.heardAtMs = -Infinity;
  }
}

/** A script that grants, as a server knows it that may grant: its text says in which run. */
export function textFor(script: Script, { id, texts }: Run): ScriptText {
  let text = texts.get(script);
  if (text === undefined) {
    text = scriptText(`${script.source}\n-- in ${id}`);
    texts.set(script, text);
  }
  return text;
}

/** Whoever knows this text may grant in that run, as far as markers of that name go. */
export function flagOf({ id }: Run, marker: string): ScriptText {
  return scriptText(`-- holdfast ${marker} is settled in ${id}\nreturn 1`);
}

function scriptText(source: string): ScriptText {
  return { source, sha1: sha1Of({ source }) };
}
