/**
 * The failover guard of a single server: decides whether the server may grant locks. It checks every script that can
 * grant a lock (docs/adr/080-failover-grace.md).
 *
 * A server that took over from another may lack the last grants, so it grants nothing for the length of the longest
 * lease. A client detects such a server as follows. A script that grants is sent only by its hash, and the script cache
 * is neither replicated nor persisted. So a server that was never asked about its lineage does not know the script. The
 * store then asks the server (`server/lineage`), and loads scripts only if the server may grant.
 *
 * A server that was demoted and promoted again knows the scripts without having been asked. So the store also asks when
 * it first uses a connection, once a minute, and before it uses a lease longer than any it has reported.
 *
 * Asking on a new connection is too late for commands that the client library resends, or that it queued while it had
 * no connection, because the guard has already let them pass. So on a server that took over, scripts are loaded with
 * the id of the run in their text, as in a cluster. The server then does not know a script that was meant for another
 * server. This holds even if the server is master for the second time and still has the scripts from the first time.
 *
 * On a server of a quorum, scripts are always loaded that way, because the server's answers hold for one run and its
 * vote must come from the same run. The same applies before Redis 7, where a replica gets the scripts of its master.
 * There, the script also checks the run itself.
 *
 * Invariants:
 *
 * - A script that grants is loaded only on a server that was asked immediately before, and is asked again immediately
 *   after.
 * - No such script is sent while the last answer is no.
 * - Unless the server must be asked, the guard adds only the comparisons in `ready` to an acquire.
 */
import type {
  AskOfMemory,
  Grace,
  LastAnswer,
  Script,
  ScriptText,
  ServerMemory,
  Standing,
  Store,
} from "../core/store.js";
import { type Admission, type FailoverGuard, type Run, Runs, type ScriptCall, textFor } from "./failover-guard.js";
import { leaseOf } from "./script-runner.js";

/**
 * How often to ask an `alone` server again, in ms. Its answer changes once any client has asked enough of the other
 * servers, and has reported their longest lease to this one.
 */
const ALONE_MS = 1_000;

/** How long an answer counts, in ms. After half of this time, the guard asks again in the background. */
export const TRUSTED_MS = 60_000;

/** The failover guard of a single server. There is one per store. */
export class ServerFailoverGuard implements FailoverGuard {
  readonly #grace: Grace;
  readonly #run: Store["run"];
  /** When the last question was sent, if the answer was yes; -Infinity if it was no, or if the connection is new. */
  #settledAtMs = -Infinity;
  /** The longest lease recorded in the marker, in ms. */
  #reportedMs = 0;
  /** The longest lease requested since the last report to the marker, in ms. */
  #seenMs = 0;
  /** The longest lease that this store has ever requested, in ms. */
  #longestMs = 0;
  /** When the last answer expires, if it was no; -Infinity if it was yes. */
  #quietUntilMs = -Infinity;
  /** The server's last answer. It may be from an earlier connection. Undefined if there is none. */
  #last: LastAnswer | undefined;
  readonly #runs = new Runs(() => {});
  /** The server run that replied last. Set only if scripts are loaded with the id of the run in their text. */
  #named: Run | undefined;
  #changes = 0;
  #asking: Promise<Standing | undefined> | undefined;

  readonly memory: ServerMemory | undefined;

  /** @param run  runs a script, bypassing this guard */
  constructor(grace: Grace, run: Store["run"]) {
    this.#grace = grace;
    this.#run = run;
    const ask: AskOfMemory = (leaseMs, timeoutMs, heard) => this.#ask(timeoutMs, leaseMs, heard);
    this.memory = grace.memoryOf?.(() => this.#last, ask);
  }

  /** See `Store.lineageKey`. */
  markerOf(): string {
    return this.#grace.marker;
  }

  /** Discards the last answer, because the connection was lost or the server changed its role. */
  serverMayHaveChanged(): void {
    this.#changes += 1;
    // The old server and its marker may be gone, and the next request may have no lease. So the longest lease is
    // reported again.
    this.#seenMs = Math.max(this.#seenMs, this.#longestMs);
    this.#settledAtMs = -Infinity;
    this.#quietUntilMs = -Infinity;
  }

  ready(call: ScriptCall): ScriptText | undefined {
    return this.#isOpen(call) ? this.#textOf(call.script) : undefined;
  }

  async ask({ script, timeoutMs }: ScriptCall): Promise<Admission> {
    return this.#admission(script, await this.#standing(timeoutMs));
  }

  /** Asks before and after loading, because the script may have reached a different server than the first request. */
  async load(
    { script, timeoutMs }: ScriptCall,
    send: (text: ScriptText) => Promise<unknown>,
  ): Promise<Admission | undefined> {
    const before = await this.#ask(timeoutMs);
    if (before === undefined) return undefined;
    const admission = this.#admission(script, before);
    if (!("text" in admission)) return admission;
    await send(admission.text);
    const after = await this.#ask(timeoutMs);
    return after && this.#admission(script, after);
  }

  #admission(script: Script, standing: Standing): Admission {
    if (standing.outcome === "settled" || standing.outcome === "hidden") return { text: this.#textOf(script) };
    return { restMs: standing.restMs, isAlone: standing.outcome === "alone" };
  }

  #textOf(script: Script): ScriptText {
    return this.#named === undefined || script.grants !== true
      ? script
      : textFor(script, this.#named, this.#grace.ifOtherRun);
  }

  #isOpen(call: ScriptCall): boolean {
    const leaseMs = leaseOf(call);
    if (leaseMs > this.#seenMs) {
      this.#seenMs = leaseMs;
      if (leaseMs > this.#longestMs) this.#longestMs = leaseMs;
    }
    const isRenewal = call.script.grants !== true && leaseMs <= this.#reportedMs;
    if (isRenewal && leaseMs === 0) return true;
    const ageMs = performance.now() - this.#settledAtMs;
    if (!isRenewal && (ageMs > TRUSTED_MS || leaseMs > this.#reportedMs)) return false;
    // Ask again for renewals too, because the marker forgets a lease length that is not reported again.
    if (ageMs > TRUSTED_MS / 2 && this.#asking === undefined) void this.#standing(call.timeoutMs).catch(() => {});
    return true;
  }

  /** Returns the server's last answer if it still counts; otherwise asks. @throws StoreError */
  async #standing(timeoutMs: number): Promise<Standing> {
    for (;;) {
      const untilMs = this.#quietUntilMs - performance.now();
      if (untilMs > 0 && this.#last !== undefined && this.#seenMs <= this.#reportedMs) {
        const { standing } = this.#last;
        return standing.outcome === "quiet" ? { ...standing, restMs: untilMs } : standing;
      }
      this.#asking ??= this.#ask(timeoutMs).finally(() => {
        this.#asking = undefined;
      });
      const standing = await this.#asking;
      // Ask again if a longer lease was requested after the question was sent.
      if (standing !== undefined && this.#seenMs <= this.#reportedMs) return standing;
    }
  }

  /**
   * Asks the server now. Undefined if the connection was lost in the meantime, because another server may have
   * answered.
   *
   * @throws StoreError
   */
  async #ask(timeoutMs: number, leastMs = 0, heard?: string): Promise<Standing | undefined> {
    const sentAtMs = performance.now();
    const changes = this.#changes;
    const leaseMs = Math.max(this.#seenMs, leastMs);
    this.#seenMs = 0;
    let standing: Standing | undefined;
    try {
      const { marker } = this.#grace;
      standing = await this.#grace.ask(this.#run, marker, leaseMs, timeoutMs, undefined, heard);
      if (changes !== this.#changes) return undefined;
      this.#note(standing, sentAtMs);
      return standing;
    } finally {
      if (standing === undefined || changes !== this.#changes) this.#seenMs = Math.max(this.#seenMs, leaseMs);
    }
  }

  #note(standing: Standing, sentAtMs: number): void {
    if (standing.outcome === "hidden") {
      this.#named = undefined;
      this.#last = undefined;
      this.#reportedMs = Infinity;
      this.#settledAtMs = Infinity;
      return;
    }
    const { run, longestMs, sharesScripts } = standing;
    // The run id of a promoted server consists of two ids, separated by a slash (lua/run-id.lua).
    const isNamed = sharesScripts || run.includes("/") || this.memory !== undefined;
    this.#named = isNamed ? this.#runs.of(run) : undefined;
    this.#last = { standing, askedAtMs: sentAtMs };
    this.#reportedMs = longestMs;
    if (standing.outcome === "settled") {
      this.#settledAtMs = sentAtMs;
      this.#quietUntilMs = -Infinity;
    } else {
      const countsForMs = standing.outcome === "alone" ? Math.min(standing.restMs, ALONE_MS) : standing.restMs;
      this.#settledAtMs = -Infinity;
      this.#quietUntilMs = performance.now() + countsForMs;
    }
  }
}
