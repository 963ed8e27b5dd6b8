/**
 * Watches the leases of a run: who holds what now, and what each lease says of itself.
 *
 * It knows true time and asks every lease, at the instants that matter, what that lease thinks of itself. Since a
 * lease that was over is never valid again (checked too), it is enough to look when somebody is granted: two leases
 * that are ever valid at the same time are so at the instant at which the later one begins.
 */

import { historyName } from "./draft.js";
import { isAlive, LossWatch } from "./loss-watch.js";
import type { SimulatedProcess } from "./process.js";
import type { Recorder } from "./recorder.js";
import type { View } from "./view.js";

/** See the file header. */
export class LeaseWatch {
  readonly #now: () => number;
  readonly #violated: (property: string, text: string) => void;
  readonly #recorder: Recorder;
  readonly losses: LossWatch;
  readonly #views = new Map<string, View[]>();
  readonly #extended: View[] = [];
  /** Owners of leases that a forced release or a steal has begun to end, when, and the token below which all grants are over by then. */
  readonly #taken = new Map<string, { readonly atMs: number; readonly below: number }>();
  #mayBeForgotten = false;

  /** @param isFair  whether nothing goes wrong between processes that live and the server */
  constructor(
    now: () => number,
    violated: (property: string, text: string) => void,
    recorder: Recorder,
    isFair: boolean,
  ) {
    this.#now = now;
    this.#violated = violated;
    this.#recorder = recorder;
    this.losses = new LossWatch(now, violated, recorder, isFair);
  }

  /** A lease begins now. */
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
      // Those come before the lease is over, and of several locks for all that are not; from then on nobody relies on it.
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
   * A steal has ended the hold of that owner on the server, just now. Its claim may be granted again, with a higher token.
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

  /** The leases that this owner has had, and that are still watched. */
  of(owner: string): View[] {
    return [...this.#views.values()].flat().filter((view) => view.own.owner === owner);
  }

  /**
   * From now on servers may say of a lease that they do not know it, and be right.
   *
   * @param owner  of the lease; absent for all, those included that are yet to begin
   */
  forgotten(owner?: string): void {
    this.#mayBeForgotten ||= owner === undefined;
    for (const views of this.#views.values())
      for (const view of views) if (owner === undefined || view.own.owner === owner) view.mayBeTaken = true;
  }

  /** Whether somebody has. */
  isTaken({ own: { owner } }: View): boolean {
    return this.#taken.has(owner);
  }

  /** Its holder ends it now. */
  over(view: View): void {
    view.isOver = true;
  }

  /** What the lease says of itself, in true ms at most; checked against all that is known. */
  ask(view: View): number {
    return this.losses.ask(view);
  }

  /** Looks for two who hold what only one may. */
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

  /** Permits have numbers: each below the number of permits, and none that another holder has too. */
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
          `${process.name} (token ${lease.token}) has ${weight} of ${limit} permits of ${lockName} by the numbers ${slots.join(", ")}, among ${valid.length}`,
        );
    }
  }

  /**
   * A lease was extended: how long it is good for from now on is asked when its holder has taken note. Of several that
   * count as one, one that is extended may put off the end of the whole, which each of their views asks.
   */
  extended(process: SimulatedProcess, owner: string): void {
    const all = [...this.#views.values()].flat().filter((view) => view.process === process);
    const extended = new Set(all.flatMap(({ own, lease }) => (own.owner === owner ? [lease] : [])));
    this.#extended.push(...all.filter(({ lease }) => extended.has(lease)));
  }

  /** Called after each event: no process may report a loss late. */
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
