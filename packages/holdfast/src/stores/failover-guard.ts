/**
 * The interface of the failover guards (one for a single server, one for a cluster), and their records of server runs.
 */
import { type Quiet, type Script, type ScriptText, type ServerMemory, scriptText } from "../core/store.js";

/** One call of `Store.run`. */
export interface ScriptCall {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly timeoutMs: number;
}

/** The guard's answer about a call: the script text to send, or the server's quiet time. */
export type Admission = { readonly text: ScriptText } | Quiet;

/**
 * If failover grace is on, checks every script that can grant a lock. There is one implementation for a single server
 * and one for a cluster.
 */
export interface FailoverGuard {
  /** See `Store.memory`. */
  readonly memory?: ServerMemory | undefined;
  /** See `Store.lineageKey`. */
  markerOf(key: string): string;
  /** Discards earlier answers, because a connection was lost or a server changed its role. */
  serverMayHaveChanged(): void;
  /** Returns the text to send now; undefined if the server must be asked first. Runs on every acquire and release. */
  ready(call: ScriptCall): ScriptText | undefined;
  /**
   * Asks the server whether the call may be sent. Returns undefined if a connection was lost in the meantime.
   *
   * @throws StoreError
   */
  ask(call: ScriptCall): Promise<Admission | undefined>;
  /**
   * Handles NOSCRIPT for a script that grants: asks the server, and loads the script if the server may grant. Returns
   * undefined if a connection was lost in the meantime.
   *
   * @param send  loads the text on the server of the call
   * @param attempt  how many times this call has received NOSCRIPT, counting from 1
   * @throws StoreError
   */
  load(call: ScriptCall, send: (text: ScriptText) => Promise<unknown>, attempt: number): Promise<Admission | undefined>;
}

/** A period in which one server process is master without interruption. */
export interface Run {
  readonly id: string;
  /** True if its quiet time is over, or if it never needed one. Never becomes false again. */
  isSettled: boolean;
  /** When the last request that it answered was sent; -Infinity if the answer no longer counts. */
  heardAtMs: number;
  /** The longest lease recorded in its marker, in ms. `reportedAtMs` is when it was last reported. */
  reportedMs: number;
  reportedAtMs: number;
  /** When its quiet time ends; -Infinity if it may grant. */
  quietUntilMs: number;
  /** The texts of scripts that grant, as loaded for this run. */
  readonly texts: Map<Script, ScriptText>;
}

/** Maximum number of runs to remember. A cluster has one current run per master, and older ones are useless. */
const MOST_RUNS = 1_000;

/** All known runs. */
export class Runs {
  readonly #byId = new Map<string, Run>();
  readonly #onForgotten: () => void;

  /** @param onForgotten  called when all runs have been discarded because there were too many */
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

/**
 * Returns the text of a script that grants, with the id of the run in it. The text is loaded only on a server that may
 * grant in this run. Before Redis 7, replicas also get the scripts of their master, so the script itself checks the run
 * there, and replies NOSCRIPT in any other run.
 *
 * @param ifOtherRun  see `Grace.ifOtherRun`
 */
export function textFor(script: Script, { id, texts }: Run, ifOtherRun: string): ScriptText {
  let text = texts.get(script);
  if (text === undefined) {
    const check = `\n${ifOtherRun}'${id}' then return {err='NOSCRIPT'} end\n`;
    // Insert the check after the first line, which must stay the name of the script.
    text = scriptText(script.source.replace("\n", () => check));
    texts.set(script, text);
  }
  return text;
}

/**
 * Returns a script that does nothing. Its presence in a server's script cache shows that the server may grant in this
 * run.
 */
export function flagOf({ id }: Run, marker: string): ScriptText {
  return scriptText(`-- holdfast ${marker} is settled in ${id}\nreturn 1`);
}
