/**
 * Whether the server behind a store may grant locks: the guard before every script that can make somebody a holder.
 *
 * A server that took over from another may lack the last grants, so it grants nothing for as long as the longest lease.
 * How a client notices: a script that grants is only ever sent by its hash, and the script cache is neither replicated nor
 * saved, so a server that nobody has asked about itself does not know the script. The store then asks
 * (`server/lineage`), and loads scripts only on a server that may grant. It also asks when it first uses a connection, once a
 * minute, and before it uses a longer lease than it has told of: a server that was demoted and promoted again, and Redis
 * before 7, which replicates scripts, may know the scripts without having been asked.
 *
 * The question at a new connection comes too late for what the client library has kept while there was none, or sends once
 * more: that was let through before. So on a server that took over the scripts are loaded with its run in their text, as the
 * servers of a cluster are: what was meant for another server it then does not know, though it may be master again and
 * know what was loaded the first time.
 *
 * On a server of a quorum they are always loaded that way: what it has told counts for one run, so a vote must be of that run.
 *
 * Invariants: no script that grants is loaded on a server that was not asked right before, and asked again right after;
 * none is sent while the last answer was no; an acquire costs nothing more than the comparison in `ready`.
 */
import { StoreError } from "../core/errors.js";
import type { Grace, Script, ScriptText, ServerMemory, Standing, Store } from "../core/store.js";
import { type Admission, type FailoverGuard, leaseOf } from "./failover-guard.js";
import { type Run, Runs, textFor } from "./runs.js";

/** How often a server is asked whether it is still alone: others may have been asked by somebody else. */
const ALONE_MS = 1_000;

/** An answer counts for so long; after half of it the next one is fetched without anybody waiting for it. */
const TRUSTED_MS = 60_000;

/** See the file header. One for each store. */
export class ServerFailoverGuard implements FailoverGuard {
  readonly #grace: Grace;
  readonly #run: Store["run"];
  /** When the last question was sent that was answered with yes; -Infinity if it was no, or the connection is new. */
  #settledAtMs = -Infinity;
  /** The longest lease that the marker knows of. */
  #toldMs = 0;
  /** The longest lease asked for since the marker was last told. */
  #seenMs = 0;
  /** The longest lease that was ever asked for here. */
  #longestMs = 0;
  /** Until when the last answer counts, if it was no; -Infinity if it was yes. */
  #quietUntilMs = -Infinity;
  /** What was said last over the connection that there was then, and when it was asked; undefined if nothing was. */
  #last: { readonly standing: Exclude<Standing, { outcome: "hidden" }>; readonly askedAtMs: number } | undefined;
  readonly #runs = new Runs(() => {});
  /** What has answered last, if it took over from another server, or is one of a quorum. */
  #named: Run | undefined;
  #changes = 0;
  #asking: Promise<Standing | undefined> | undefined;

  readonly memory: ServerMemory | undefined;

  /** @param run  runs a script past this guard */
  constructor(grace: Grace, run: Store["run"]) {
    this.#grace = grace;
    this.#run = run;
    this.memory = grace.isOfQuorum === true ? this.#asMemory() : undefined;
  }

  /** As `Store.lineageKey`. */
  markerOf(): string {
    return this.#grace.marker;
  }

  /** The connection was away, or the server no longer is what it was: what it said counts no more. */
  serverMayHaveChanged(): void {
    this.#changes += 1;
    // The server that was told may be gone, with its marker; and what is asked for next may need no lease.
    this.#seenMs = Math.max(this.#seenMs, this.#longestMs);
    this.#settledAtMs = -Infinity;
    this.#quietUntilMs = -Infinity;
  }

  ready(
    script: Script,
    _keys: readonly string[],
    args: readonly (string | number)[],
    timeoutMs: number,
  ): ScriptText | undefined {
    return this.#isOpen(script, args, timeoutMs) ? this.#textOf(script) : undefined;
  }

  async ask(script: Script, _keys: readonly string[], timeoutMs: number): Promise<Admission> {
    return this.#admission(script, await this.#standing(timeoutMs));
  }

  /** Asks before it loads, and once more after: the script may have reached another server than was asked. */
  async load(
    script: Script,
    _keys: readonly string[],
    timeoutMs: number,
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
    return this.#named === undefined || script.grants !== true ? script : textFor(script, this.#named);
  }

  #isOpen(script: Script, args: readonly (string | number)[], timeoutMs: number): boolean {
    const leaseMs = leaseOf(script, args);
    if (leaseMs > this.#seenMs) {
      this.#seenMs = leaseMs;
      if (leaseMs > this.#longestMs) this.#longestMs = leaseMs;
    }
    const isRenewal = script.grants !== true && leaseMs <= this.#toldMs;
    if (isRenewal && leaseMs === 0) return true;
    const ageMs = performance.now() - this.#settledAtMs;
    if (!isRenewal && (ageMs > TRUSTED_MS || leaseMs > this.#toldMs)) return false;
    // Also for whoever only renews: a marker forgets the length of leases of which nobody tells it.
    if (ageMs > TRUSTED_MS / 2 && this.#asking === undefined) void this.#standing(timeoutMs).catch(() => {});
    return true;
  }

  /** What is known of the server, or else what it says when it is asked. @throws StoreError */
  async #standing(timeoutMs: number): Promise<Standing> {
    for (;;) {
      const untilMs = this.#quietUntilMs - performance.now();
      if (untilMs > 0 && this.#last !== undefined && this.#seenMs <= this.#toldMs) {
        const { standing } = this.#last;
        return standing.outcome === "quiet" ? { ...standing, restMs: untilMs } : standing;
      }
      this.#asking ??= this.#ask(timeoutMs).finally(() => {
        this.#asking = undefined;
      });
      const standing = await this.#asking;
      // Somebody may have asked for a longer lease since the question was sent.
      if (standing !== undefined && this.#seenMs <= this.#toldMs) return standing;
    }
  }

  /** Asks the server now. Undefined if the connection was lost meanwhile: who knows who has answered. @throws StoreError */
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
      this.#toldMs = Infinity;
      this.#settledAtMs = Infinity;
      return;
    }
    const { run, longestMs } = standing;
    // What was promoted has two ids: lua/run-id.lua.
    this.#named = run.includes("/") || this.memory !== undefined ? this.#runs.of(run) : undefined;
    this.#last = { standing, askedAtMs: sentAtMs };
    this.#toldMs = longestMs;
    if (standing.outcome === "settled") {
      this.#settledAtMs = sentAtMs;
      this.#quietUntilMs = -Infinity;
    } else {
      const countsForMs = standing.outcome === "alone" ? Math.min(standing.restMs, ALONE_MS) : standing.restMs;
      this.#settledAtMs = -Infinity;
      this.#quietUntilMs = performance.now() + countsForMs;
    }
  }

  #asMemory(): ServerMemory {
    const last = (): Exclude<Standing, { outcome: "hidden" }> | undefined => this.#last?.standing;
    return {
      knows: (leaseMs) => {
        const standing = last();
        const isRecent = this.#last !== undefined && performance.now() - this.#last.askedAtMs <= TRUSTED_MS;
        return isRecent && standing?.outcome === "settled" && standing.longestMs >= leaseMs ? standing.run : undefined;
      },
      get aloneIn() {
        const standing = last();
        return standing?.outcome === "alone" ? standing.run : undefined;
      },
      ask: async (leaseMs, timeoutMs, heard) => {
        const standing = await this.#ask(timeoutMs, leaseMs, heard);
        if (standing !== undefined) return standing;
        const cause = new Error("the connection was lost while the server was asked about itself");
        throw new StoreError(this.#grace.marker, { mayHaveRun: false, transient: true, cause });
      },
    };
  }
}
