/** Adapts `run`, which does not await the release, to a caller that acquires and releases. */
import { type Lease, type ReleaseOutcome, StoreError } from "holdfast";
import type { ReleaseEvents } from "../../simulation/release-events.js";

/** `run` of a lock, with the options of the request. */
export type Run = (
  work: (lease: Lease) => Promise<void>,
  options: { readonly release: "background"; readonly onReleaseError: (error: unknown) => void },
) => Promise<void>;

/** One hold via `run`. */
export class BackgroundHold {
  readonly #run: Run;
  readonly #events: ReleaseEvents;
  #running: Promise<void> = Promise.resolve();
  #endWork: () => void = () => {};
  #told: { readonly error: unknown } | undefined;

  constructor(run: Run, events: ReleaseEvents) {
    this.#run = run;
    this.#events = events;
  }

  /** Resolves when the work begins. The work ends at the release. */
  acquire(): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const work = (lease: Lease): Promise<void> =>
        new Promise((end) => {
          this.#endWork = end;
          resolve(lease);
        });
      const onReleaseError = (error: unknown): void => {
        this.#told = { error };
      };
      this.#running = this.#run(work, { release: "background", onReleaseError });
      this.#running.catch(reject);
    });
  }

  /** Ends the work. Resolves to the outcome of the release, which is known only after `run` has settled. */
  async release(lease: Lease): Promise<ReleaseOutcome> {
    this.#endWork();
    await this.#running;
    const outcome = await this.#events.of(lease);
    if (outcome === "released" || outcome === "expired-unclaimed") return outcome;
    // The callback comes after the event.
    await new Promise((resolve) => setImmediate(resolve));
    throw this.#told?.error ?? new StoreError(lease.name, { mayHaveRun: true, transient: false, cause: outcome });
  }
}
