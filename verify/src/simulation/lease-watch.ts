/**
 * Watches the leases of a run: the current holders, and what each lease reports about itself.
 *
 * It knows the true time and asks every lease about its validity at the relevant instants. An ended lease never
 * becomes valid again, which is checked too. So it is enough to ask at each grant: if two leases are ever valid at
 * the same time, they are valid when the later one begins.
 */

import { historyName } from "./draft.js";
import { isAlive, LossWatch } from "./loss-watch.js";
import type { SimulatedProcess } from "./process.js";
import type { Recorder } from "./recorder.js";
import type { View } from "./view.js";

/** Watches all leases. */
export class LeaseWatch {
  readonly #now: () => number;
  readonly #violated: (property: string, text: string) => void;
  readonly #recorder: Recorder;
  readonly losses: LossWatch;
  readonly #views = new Map<string, View[]>();
  readonly #extended: View[] = [];
  /**
   * Owners whose leases a forced release or a steal has begun to end, with the time, and the token below which all
   * grants have ended by then.
   */
  readonly #taken = new Map<string, { readonly atMs: number; readonly below: number }>();
  #mayBeForgotten = false;

  /** @param isFair  whether there are no faults between live processes and the server */
  constructor(
    now: () => number,
    violated: (property: string, text: string) => void,
    recorder: Recorder,
    isFair: boolean,
    oldProcess?: number,
  ) {
    this.#now = now;
    this.#violated = violated;
    this.#recorder = recorder;
    this.losses = new LossWatch(now, violated, recorder, isFair, oldProcess);
  }

  /** Records that a lease begins now. */
  add(
    facts: Pick<
      View,
      | "attempt"
      | "process"
      | "lease"
      | "own"
      | "lockName"
      | "weight"
      | "limit"
      | "operation"
      | "grantId"
      | "turn"
      | "isRenewed"
    >,
  ): View {
    const view: View = {
      ...facts,
      token: facts.own.token,
      grantedMs: this.#now(),
      isOver: false,
      isTaken: false,
      mayBeTaken: this.#mayBeForgotten,
      wasFalse: false,
      lossDueMs: Infinity,
    };
    const views = this.#views.get(facts.lockName);
    if (views === undefined) this.#views.set(facts.lockName, [view]);
    else views.push(view);
    const { operation, lockName, process } = facts;
    const taken = this.#taken.get(facts.own.owner);
    if (taken !== undefined) {
      view.mayBeTaken = true;
      view.isTaken = view.token < taken.below;
      if (view.isTaken) this.#recorder.taken(operation, process, taken.atMs);
    }
    const told = (): void => {
      const { reason } = facts.lease.signal.reason as { readonly reason?: string };
      // These reasons are reported before the lease ends, and for all members of a multi-lock; afterward the holder
      // does not rely on it.
      if (reason === "max-hold" || reason === "closed" || facts.own !== facts.lease)
        this.#recorder.called({ process, lockName, verb: "release", owner: operation.owner, leaseId: operation.id });
      this.#recorder.add({
        type: "lost",
        atMs: this.#now(),
        process: historyName(process),
        lockName,
        leaseId: operation.id,
      });
    };
    if (facts.lease.signal.aborted) told();
    else facts.lease.signal.addEventListener("abort", told, { once: true });
    operation.validUntilMs = this.#now() + process.longestTrueMs(facts.lease.validForMs());
    this.ask(view);
    this.checkExclusion(facts.lockName);
    return view;
  }

  /** A forced release takes the lock from the claim of this lease, even if the claim serves another caller by then. */
  taken({ own: { owner } }: View): void {
    this.#taken.set(owner, { atMs: this.#now(), below: Infinity });
    for (const view of this.of(owner)) view.isTaken = view.mayBeTaken = true;
  }

  /**
   * Records that a steal has just ended the hold of that owner on the server. The claim may be granted again, with a
   * higher token.
   *
   * @param by  the process that stole the lock, and its token
   */
  stolen(
    owner: string,
    by: { readonly process: SimulatedProcess; readonly lockName: string; readonly token: number },
  ): void {
    this.#taken.set(owner, { atMs: this.#now(), below: by.token });
    for (const view of this.of(owner)) {
      view.mayBeTaken = true;
      view.isTaken ||= view.token < by.token;
    }
    this.#recorder.stolen(owner, by.process, by.lockName);
  }

  /** The leases of this owner that are still watched. */
  of(owner: string): View[] {
    return [...this.#views.values()].flat().filter((view) => view.own.owner === owner);
  }

  /**
   * Records that servers may have lost leases, so that they may deny them from now on.
   *
   * @param owner  the owner of the lost lease; absent for all current and future leases
   */
  forgotten(owner?: string): void {
    this.#mayBeForgotten ||= owner === undefined;
    for (const views of this.#views.values())
      for (const view of views) if (owner === undefined || view.own.owner === owner) view.mayBeTaken = true;
  }

  /** Whether the lock was taken from this lease. */
  isTaken({ own: { owner } }: View): boolean {
    return this.#taken.has(owner);
  }

  /** Records that the holder ends the lease now. */
  over(view: View): void {
    view.isOver = true;
  }

  /** The remaining validity that the lease reports, as an upper bound in true ms; checked against all known facts. */
  ask(view: View): number {
    return this.losses.ask(view);
  }

  /** Checks that an exclusive lock does not have two holders. */
  checkExclusion(lockName: string): void {
    let sum = 0;
    const valid = (this.#views.get(lockName) ?? []).filter((view) => {
      if (view.isOver || view.isTaken || view.process.isDead || this.ask(view) <= 0) return false;
      sum += view.weight;
      return true;
    });
    const limit = Math.max(...valid.map((view) => view.limit));
    this.#checkSlots(lockName, valid, limit);
    if (valid.length === 0 || sum <= limit) return;
    const who = valid.map(
      ({ process, token, weight, lease }) =>
        `${process.name} (token ${token}, ${weight} of ${limit}, ${lease.validForMs().toFixed(1)} ms left)`,
    );
    this.#violated(limit === 1 ? "S2" : "X1", `${lockName} is held by ${who.join(" and ")}`);
    for (const view of valid.slice(1)) view.isOver = true;
  }

  /** Permits have distinct numbers below the limit. */
  #checkSlots(lockName: string, valid: readonly View[], limit: number): void {
    const seen = new Set<number>();
    for (const { lease, process, weight, own } of valid) {
      if (!("slots" in own)) continue;
      const slots = own.slots as readonly number[];
      const isWrong = slots.length !== weight || slots.some((slot) => slot < 0 || slot >= limit || seen.has(slot));
      for (const slot of slots) seen.add(slot);
      if (isWrong)
        this.#violated(
          "X1",
          `${process.name} (token ${lease.token}) has ${weight} of ${limit} permits of ${lockName} with the numbers ${slots.join(", ")}, among ${valid.length}`,
        );
    }
  }

  /**
   * Records an extension; its new end is read after the holder has processed it. If several leases share a hold, an
   * extension of one may postpone the end of all, so each view is asked.
   */
  extended(process: SimulatedProcess, owner: string): void {
    const all = [...this.#views.values()].flat().filter((view) => view.process === process);
    const extended = new Set(all.flatMap(({ own, lease }) => (own.owner === owner ? [lease] : [])));
    this.#extended.push(...all.filter(({ lease }) => extended.has(lease)));
  }

  /** Called after each event: checks that no process reports a loss late. */
  afterEvent(): void {
    for (const view of this.#extended.splice(0)) if (isAlive(view)) this.ask(view);
    for (const [lockName, views] of this.#views) {
      for (const view of views) {
        if (this.losses.isDue(view)) this.ask(view);
      }
      if (views.length > 12) this.#views.set(lockName, views.filter(isAlive));
    }
  }
}
