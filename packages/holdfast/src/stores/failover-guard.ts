import type { Quiet, Script, ScriptText, ServerMemory } from "../core/store.js";

/** The guard's answer about a call. */
export type Admission =
  /** The call may be sent in this form. */
  | { readonly text: ScriptText }
  /** The server may grant nothing for the given time. */
  | Quiet;

/**
 * Checks every script that can make a claim the holder, if failover grace is on.
 *
 * There is one implementation for a single server and one for a cluster. `ScriptRunner` uses only this interface.
 */
export interface FailoverGuard {
  /** As `Store.memory`. */
  readonly memory?: ServerMemory | undefined;
  /** As `Store.lineageKey`. */
  markerOf(key: string): string;
  /** Discards earlier answers, because a connection was lost or a server changed its role. */
  serverMayHaveChanged(): void;
  /**
   * The form in which the call may be sent immediately; undefined if the server must be asked first. Runs on every acquire and
   * release.
   */
  ready(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    timeoutMs: number,
  ): ScriptText | undefined;
  /** Asks the server whether the call may be sent. Undefined if a connection was lost meanwhile. @throws StoreError */
  ask(script: Script, keys: readonly string[], timeoutMs: number): Promise<Admission | undefined>;
  /**
   * Handles NOSCRIPT for a script that grants: asks the server, and loads the script if the server may grant. Undefined if a
   * connection was lost meanwhile.
   *
   * @param send  loads the text on the server of the call
   * @param attempt  how many times this call has been here, from 1
   * @throws StoreError
   */
  load(
    script: Script,
    keys: readonly string[],
    timeoutMs: number,
    send: (text: ScriptText) => Promise<unknown>,
    attempt: number,
  ): Promise<Admission | undefined>;
}

/** Length of the longest lease that a call asks for, in ms; 0 if it asks for none. */
export function leaseOf(script: Script, args: readonly (string | number)[]): number {
  const at = script.args.indexOf("leaseMs");
  if (at >= 0) return Number(args[at]);
  const many = script.args.indexOf("leases");
  return many < 0 ? 0 : longestOf(String(args[many]));
}

/** The longest of the leases in the argument of mutex/renew. Each lease is three words; the last is its length in ms. */
function longestOf(leases: string): number {
  const lengths = leases.split(" ").filter((_, place) => place % 3 === 2);
  return Math.max(0, ...lengths.map(Number));
}
