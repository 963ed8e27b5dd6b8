/**
 * The failover guard of a cluster: decides whether the server of a slot may grant locks. In a cluster, slots move
 * between servers, and each master fails over independently (docs/adr/082-failover-grace-in-clusters.md).
 *
 * A *run* is a period in which one process is master without interruption. The guard remembers which runs have finished
 * their quiet time, and for which run a slot is *whole*, which means that the run has every grant made in the slot.
 * These facts never become false. A script that grants is loaded with the id of the run in its text. So a server knows
 * the script only if a client has found that this run may grant. If a slot moves to another server, for whatever
 * reason, that server replies NOSCRIPT. The guard then checks:
 *
 * 1. Does the marker of the slot name this run? If so, the slot is whole.
 * 2. If not, is the run settled? That is, its quiet time is over, or it never needed one.
 * 3. Are the runs of all other masters settled too? The slot may have come from any of them. If all runs are settled,
 *    the slot is whole.
 *
 * Invariants:
 *
 * - A script text that names a run is sent to a slot only if the slot was found whole for that run.
 * - Such a text is sent only while the last reply from that run is at most `TRUSTED_MS` old, because a server that was
 *   demoted and promoted again still has its old texts.
 */
import type { Grace, Script, ScriptText, ShardStanding, Store } from "../core/store.js";
import { clusterSlot, tagOf } from "./cluster-slot.js";
import {
  type Admission,
  type FailoverGuard,
  flagOf,
  type Run,
  Runs,
  type ScriptCall,
  textFor,
} from "./failover-guard.js";
import { isUnknownScript, notRun } from "./failure.js";
import { leaseOf, type ScriptClient } from "./script-runner.js";
import { unrefSleep, within } from "./timeout.js";

/**
 * How long a reply from a run counts, in ms. A server cannot be demoted and promoted again in less time. After half of
 * this time, the guard asks again in the background.
 */
const TRUSTED_MS = 2_000;
/** How long a slot counts as whole after it was found whole, provided that its run continues. */
const SLOT_TRUSTED_MS = 60_000;
/**
 * How long to wait before asking again after a server replied that it must not grant yet. By then, the server
 * may be settled, or the slot may have moved.
 */
const QUIET_TRUSTED_MS = 500;
/**
 * How often to report the longest lease again, in ms, because its slot, and with it the marker that records it, may have
 * moved to another server.
 */
const TOLD_MS = 60_000;
/** Number of attempts, with growing pauses between them, because slots may move during the check. */
const TRIES = 5;
const PAUSE_MS = 20;

type Look = Exclude<ShardStanding, { readonly outcome: "hidden" }>;
type Found = { readonly run: Run } | { readonly restMs: number } | undefined;

/** Timeout for the commands that the guard sends directly, without `grace`, in ms. */
const ANSWER_MS = 1_000;

/** The failover guard of a cluster. There is one per store. */
export class ClusterFailoverGuard implements FailoverGuard {
  readonly #grace: Grace;
  readonly #inspectSlot: NonNullable<Grace["inspectSlot"]>;
  readonly #run: Store["run"];
  readonly #client: Pick<ScriptClient, "evalsha" | "load">;
  readonly #runs = new Runs(() => this.#slots.clear());
  readonly #slots = new Map<number, { readonly run: Run; readonly atMs: number }>();
  /**
   * Slots whose servers must not grant yet. A caller that asks again within a short time gets the stored answer,
   * without another request.
   */
  readonly #quiet = new Map<number, { readonly untilMs: number; readonly endMs: number; readonly longestMs: number }>();
  readonly #asking = new Map<number, Promise<Found>>();
  /** The longest lease that this store has ever requested, in ms. */
  #longestMs = 0;
  /**
   * The longest lease, in ms, that was reported to any server. A script that does not grant is sent without a check
   * if its lease is no longer than this, even to a server that was never checked.
   */
  #reportedMs = 0;
  #changes = 0;
  #isHidden = false;

  /** @param run  runs a script on `client`, bypassing this guard */
  constructor(grace: Grace, run: Store["run"], client: Pick<ScriptClient, "evalsha" | "load">) {
    const { inspectSlot } = grace;
    if (inspectSlot === undefined) throw new TypeError("cluster grace needs inspectSlot");
    this.#grace = grace;
    this.#inspectSlot = inspectSlot;
    this.#run = run;
    this.#client = client;
  }

  markerOf(key: string): string {
    return this.#markerOf(clusterSlot(key));
  }

  serverMayHaveChanged(): void {
    this.#changes += 1;
    this.#runs.serverMayHaveChanged();
    this.#quiet.clear();
  }

  ready(call: ScriptCall): ScriptText | undefined {
    const { script, timeoutMs } = call;
    if (this.#isHidden) return script;
    const leaseMs = leaseOf(call);
    if (leaseMs > this.#longestMs) this.#longestMs = leaseMs;
    if (script.grants !== true && (leaseMs > this.#reportedMs || readsMarker(script))) return undefined;
    if (script.grants !== true && leaseMs === 0) return script;
    const slot = slotOf(call);
    const known = this.#slots.get(slot);
    const nowMs = performance.now();
    if (script.grants !== true) {
      // Report the lease length regularly, because the marker forgets a length that is not reported again.
      const isReported = known !== undefined && nowMs - known.run.reportedAtMs <= TOLD_MS;
      if (!isReported) void this.#found(slot, timeoutMs).catch(() => {});
      return script;
    }
    if (known === undefined) return undefined;
    const { run, atMs } = known;
    const age = Math.max((nowMs - run.heardAtMs) / TRUSTED_MS, (nowMs - atMs) / SLOT_TRUSTED_MS);
    if (leaseMs > run.reportedMs || age > 1) return undefined;
    if (age > 0.5) void this.#found(slot, timeoutMs).catch(() => {});
    return textFor(script, run, this.#grace.ifOtherRun);
  }

  async ask(call: ScriptCall): Promise<Admission | undefined> {
    return this.#admission(call.script, await this.#found(slotOf(call), call.timeoutMs));
  }

  async load(
    call: ScriptCall,
    send: (text: ScriptText) => Promise<unknown>,
    attempt: number,
  ): Promise<Admission | undefined> {
    // The first attempts can fail because the client does not know where the slot is. If later ones fail too, the slot
    // may still be moving, so wait.
    if (attempt > 2) await unrefSleep(Math.min(attempt - 2, TRIES) * PAUSE_MS);
    const slot = slotOf(call);
    this.#slots.delete(slot);
    // A check in progress may be about the previous server, so let it end and start a new one.
    await this.#asking.get(slot)?.catch(() => {});
    const admission = this.#admission(call.script, await this.#found(slot, call.timeoutMs));
    if (admission !== undefined && "text" in admission) await send(admission.text);
    return admission;
  }

  #admission(script: Script, found: Found): Admission | undefined {
    if (this.#isHidden) return { text: script };
    if (found === undefined) return undefined;
    if ("restMs" in found) return found;
    return { text: script.grants === true ? textFor(script, found.run, this.#grace.ifOtherRun) : script };
  }

  #markerOf(slot: number): string {
    return `${this.#grace.marker}:{${tagOf(slot)}}`;
  }

  #homeOf(slot: number): string {
    return `${this.#markerOf(slot)}:home`;
  }

  /**
   * Returns the run for which the slot is whole, or the remaining quiet time if no lock in the slot may be granted yet.
   * Undefined if a connection was lost in the meantime. Concurrent callers share one check.
   */
  #found(slot: number, timeoutMs: number): Promise<Found> {
    const quiet = this.#quiet.get(slot);
    const nowMs = performance.now();
    if (quiet !== undefined && quiet.untilMs > nowMs && this.#longestMs <= quiet.longestMs) {
      return Promise.resolve({ restMs: quiet.endMs - nowMs });
    }
    let asking = this.#asking.get(slot);
    if (asking === undefined) {
      asking = this.#find(slot, timeoutMs).finally(() => this.#asking.delete(slot));
      this.#asking.set(slot, asking);
    }
    return asking;
  }

  async #find(slot: number, timeoutMs: number): Promise<Found> {
    const changes = this.#changes;
    for (let tries = 1; ; tries += 1) {
      const longestMs = this.#longestMs;
      const found = await this.#tryToFind(slot, timeoutMs);
      if (found !== undefined && "restMs" in found) {
        const endMs = performance.now() + found.restMs;
        this.#quiet.set(slot, { untilMs: Math.min(endMs, performance.now() + QUIET_TRUSTED_MS), endMs, longestMs });
      } else this.#quiet.delete(slot);
      if (changes !== this.#changes) return undefined;
      if (found !== undefined || this.#isHidden) return found;
      if (tries === TRIES) {
        const cause = new Error("slots moved while Holdfast checked whether their servers may grant locks");
        throw notRun(this.#markerOf(slot), cause, true);
      }
      await unrefSleep(PAUSE_MS * tries);
    }
  }

  /** One attempt of `#find`. Undefined if servers changed in the meantime, or do not reveal what the check needs. */
  async #tryToFind(slot: number, timeoutMs: number): Promise<Found> {
    const marker = this.#markerOf(slot);
    const { run: heard, standing } = await this.#inspect(marker, "", false, timeoutMs);
    if (standing === undefined || heard === undefined) return undefined;
    const leaseMs = this.#longestMs;
    const isReported = leaseMs <= heard.reportedMs && performance.now() - heard.reportedAtMs < TOLD_MS;
    if (standing.outcome === "whole") {
      heard.isSettled = true;
      if (!isReported) await this.#report(marker, heard, timeoutMs);
      if (leaseMs > heard.reportedMs) return undefined;
      return this.#note(slot, heard);
    }
    const { run, standing: seen } = await this.#inspect(marker, "", true, timeoutMs);
    if (run !== heard || seen === undefined) return undefined;
    const restMs = await this.#settle(run, seen.home, timeoutMs);
    if (restMs === undefined || restMs > 0) return restMs === undefined ? undefined : { restMs };
    const othersMs = await Promise.all(seen.others.map((other) => this.#settleOther(other, timeoutMs)));
    if (othersMs.includes(undefined)) return undefined;
    const longestMs = Math.max(0, ...othersMs.map((otherMs) => otherMs ?? 0));
    if (longestMs > 0) return { restMs: longestMs };
    const { run: last, standing: vouched } = await this.#inspect(marker, run.id, false, timeoutMs);
    if (last !== run || vouched?.outcome !== "whole") return undefined;
    if (leaseMs > run.reportedMs) await this.#report(marker, run, timeoutMs);
    return leaseMs > run.reportedMs ? undefined : this.#note(slot, run);
  }

  #note(slot: number, run: Run): Found {
    this.#slots.set(slot, { run, atMs: run.heardAtMs });
    return { run };
  }

  /** Asks a slot's server for the state of the slot and for the run of the server. */
  async #inspect(
    marker: string,
    vouched: string,
    withOthers: boolean,
    timeoutMs: number,
  ): Promise<{ readonly run?: Run; readonly standing?: Look }> {
    const sentAtMs = performance.now();
    const changes = this.#changes;
    const standing = await this.#inspectSlot(this.#run, marker, vouched, withOthers, timeoutMs);
    if (standing.outcome === "hidden") {
      this.#isHidden = true;
      return {};
    }
    const run = this.#runs.of(standing.run);
    if (changes === this.#changes) run.heardAtMs = Math.max(run.heardAtMs, sentAtMs);
    return { run, standing };
  }

  /**
   * The time until a listed master may grant, in ms; 0 if it may grant now. Undefined if another server replied.
   */
  async #settleOther(
    { id, home }: { readonly id: string; readonly home: number },
    timeoutMs: number,
  ): Promise<number | undefined> {
    const marker = this.#markerOf(home);
    const { run, standing } = await this.#inspect(marker, "", false, timeoutMs);
    if (run === undefined || standing?.id !== id) return undefined;
    if (standing.outcome === "whole") run.isSettled = true;
    if (run.isSettled) return 0;
    const { run: same, standing: seen } = await this.#inspect(marker, "", true, timeoutMs);
    return same === run && seen?.id === id ? this.#settle(run, seen.home, timeoutMs) : undefined;
  }

  /**
   * The time until this run may grant, in ms; 0 if it may grant now. Undefined if its home slot has moved to another
   * server.
   */
  async #settle(run: Run, home: number, timeoutMs: number): Promise<number | undefined> {
    if (run.isSettled) return 0;
    const restMs = run.quietUntilMs - performance.now();
    if (restMs > 0 && this.#longestMs <= run.reportedMs) return restMs;
    const marker = this.#homeOf(home);
    const flag = flagOf(run, this.#grace.marker);
    const standing = await this.#ask(marker, run, "", timeoutMs);
    if (standing?.outcome === "settled") {
      run.isSettled = true;
      await within(ANSWER_MS, this.#client.load(flag.source, [marker], 1));
      return 0;
    }
    if (standing === undefined) return undefined;
    // If the marker moved here with its slot, it may describe another server, so check the flag too.
    if (await this.#isLoaded(flag, marker)) {
      run.isSettled = true;
      return (await this.#ask(marker, run, run.id, timeoutMs))?.outcome === "settled" ? 0 : undefined;
    }
    return standing.restMs;
  }

  /** Whether the server that has `key` knows the script. Running the script changes nothing. */
  async #isLoaded({ sha1 }: ScriptText, key: string): Promise<boolean> {
    try {
      await within(ANSWER_MS, this.#client.evalsha(sha1, [key], []));
      return true;
    } catch (cause) {
      if (isUnknownScript(cause)) return false;
      throw cause;
    }
  }

  /** Reports the longest lease to a run that may grant. */
  async #report(marker: string, run: Run, timeoutMs: number): Promise<void> {
    const { run: same, standing } = await this.#inspect(marker, "", true, timeoutMs);
    if (same === run && standing !== undefined) await this.#ask(this.#homeOf(standing.home), run, run.id, timeoutMs);
  }

  async #ask(
    marker: string,
    run: Run,
    vouched: string,
    timeoutMs: number,
  ): Promise<Exclude<Awaited<ReturnType<Grace["ask"]>>, { readonly outcome: "hidden" }> | undefined> {
    const sentAtMs = performance.now();
    const standing = await this.#grace.ask(this.#run, marker, this.#longestMs, timeoutMs, vouched);
    if (standing.outcome === "hidden") {
      this.#isHidden = true;
      return undefined;
    }
    if (standing.run !== run.id) return undefined;
    run.reportedMs = standing.longestMs;
    run.reportedAtMs = sentAtMs;
    run.quietUntilMs = standing.outcome === "quiet" ? performance.now() + standing.restMs : -Infinity;
    this.#reportedMs = Math.max(this.#reportedMs, standing.longestMs);
    return standing;
  }
}

function slotOf({ keys }: ScriptCall): number {
  return clusterSlot(keys[0] ?? "");
}

/**
 * Whether the script can restore a lease. Such a script reads the marker of the slot, so the marker must be correct
 * before the script runs.
 */
function readsMarker(script: Script): boolean {
  return script.renews === true && script.keys.includes("marker");
}
