import type { Quiet, Script, ScriptText, ServerMemory } from "../core/store.js";

/** What the guard says of a call that it was asked about. */
export type Admission =
  /** It may be sent in this form. */
  | { readonly text: ScriptText }
  /** The server may grant nothing for so long. */
  | Quiet;

/**
 * What stands before every script that can make somebody a holder, where failover grace is on.
 *
 * There is one for a single server and one for a cluster; `ScriptRunner` knows no more of them than this.
 */
export interface FailoverGuard {
  /** As `Store.memory`. */
  readonly memory?: ServerMemory | undefined;
  /** As `Store.lineageKey`. */
  markerOf(key: string): string;
  /** A connection was away, or a server no longer is what it was: what it said counts no more. */
  serverMayHaveChanged(): void;
  /** In which form the call may be sent without a question; undefined if there is one. On the path of every acquire and release. */
  ready(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    timeoutMs: number,
  ): ScriptText | undefined;
  /** Asks what there is to ask. Undefined if a connection was lost meanwhile. @throws StoreError */
  ask(script: Script, keys: readonly string[], timeoutMs: number): Promise<Admission | undefined>;
  /**
   * The server did not know a script that grants: asks, and loads it if the server may grant. Undefined if a connection was lost
   * meanwhile.
   *
   * @param send  loads the text on the server of the call
   * @param attempt  how often this call has come to here, from 1
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

/** Of the leases of mutex/renew: of each, the length is the last of three words. */
function longestOf(leases: string): number {
  const lengths = leases.split(" ").filter((_, place) => place % 3 === 2);
  return Math.max(0, ...lengths.map(Number));
}
