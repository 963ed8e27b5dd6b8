/**
 * Runs in which most callers hold via `run`, which does not await the release (docs/adr/144), and in which processes
 * crash right after a `run` has settled.
 *
 * They are derived from the runs of the profile "promised", so background releases meet all of its faults. Changes use
 * their own random stream, for the same reason as in drawn-since.ts.
 */
import { type AcquireOptions, type Lease, type ReleaseOutcome, StoreError } from "holdfast";
import type { FaultEvent } from "./fault-event.js";
import { ARMED_MS } from "./hand-offs.js";
import type { Plan } from "./plan.js";
import { Random } from "./random.js";
import type { Scene } from "./scene.js";
import type { Session } from "./session.js";

/** Kinds that are used via `run`. */
const KINDS: ReadonlySet<string> = new Set(["mutex", "reentrant-mutex", "semaphore", "read-write-lock"]);
/** Ids from here on belong to crashes after a run. */
const FIRST_ID = 6_001;
/** The random stream: in the upper half of the seed space, which nothing else uses. */
const STREAM = 29 * 4_294_967_296;
/** `run` cannot make a single attempt, so it has this wait limit instead. */
const TRY_MS = 20;
const CRASHES_UNTIL_MS = 6_500;
/** Upper bound for the duration of everything within one instant. */
const INSTANT_MS = 0.01;

/** The same plan with mostly background releases; unchanged for a kind without `run`. */
export function withBackground(plan: Plan): Plan {
  if (!KINDS.has(plan.kind)) return plan;
  const random = new Random(plan.seed + STREAM);
  const sessions = plan.sessions.map((session) => {
    const isChosen = random.chance(0.8);
    return isChosen && mayRun(plan, session) ? inBackground(session) : session;
  });
  const crashes = Array.from(
    { length: random.whole(1, 4) },
    (_, place): FaultEvent => ({
      id: FIRST_ID + place,
      atMs: random.whole(0, CRASHES_UNTIL_MS - ARMED_MS),
      process: random.whole(0, plan.processCount - 1),
      what: "crash-after-run",
      isSent: random.chance(0.5),
      backInMs: random.whole(1, 1_000),
      goneInMs: random.pick([0, 0, 50, 2_000]),
    }),
  );
  return { ...plan, sessions, faults: [...plan.faults, ...crashes].sort((a, b) => a.atMs - b.atMs) };
}

function mayRun({ kind, oldProcess }: Plan, { end, way, amount, process }: Session): boolean {
  // Reentering gives another lease with the same owner and token, by which the end of a lease is recognized here.
  const entersAgain = kind === "reentrant-mutex" && amount % 2 !== 0;
  return end === "release" && way === undefined && !entersAgain && process !== oldProcess;
}

function inBackground(session: Session): Session {
  const waitMs = session.isTry ? TRY_MS : session.waitMs;
  return { ...session, way: "in-background", isTry: false, waitMs };
}

/** `run` of a lock, with the options of a session. */
export type Run<Held extends Lease> = (
  work: (lease: Held) => Promise<void>,
  options: AcquireOptions & { readonly release: "background"; readonly onReleaseError: (error: unknown) => void },
) => Promise<void>;

/** Presents a caller that holds via `run` as one that acquires and releases. */
export class BackgroundHold<Held extends Lease> {
  readonly #scene: Scene;
  readonly #run: Run<Held>;
  #running: Promise<void> = Promise.resolve();
  #endWork: () => void = () => {};
  #told: { readonly error: unknown } | undefined;

  constructor(scene: Scene, run: Run<Held>) {
    this.#scene = scene;
    this.#run = run;
  }

  /** Resolves when the work begins. The work continues until `release`. */
  acquire(options: AcquireOptions): Promise<Held> {
    return new Promise((resolve, reject) => {
      const work = (lease: Held): Promise<void> =>
        new Promise((end) => {
          this.#endWork = end;
          resolve(lease);
        });
      const onReleaseError = (error: unknown): void => {
        this.#told = { error };
      };
      this.#running = this.#run(work, { ...options, release: "background", onReleaseError });
      this.#running.catch(reject);
    });
  }

  /**
   * Ends the work. Checks that `run` settles at that instant and has sent the release by then, unless the lease has
   * ended.
   *
   * @returns the outcome of the release, when it is known
   */
  async release(lease: Held): Promise<ReleaseOutcome> {
    const { judge, world, member, session, lockName } = this.#scene;
    const { process } = member;
    const wasHeld = lease.validForMs() > 0;
    const endedMs = world.nowMs;
    this.#endWork();
    await this.#running;
    if (wasHeld) {
      if (world.nowMs - endedMs > INSTANT_MS)
        judge.violated("L4", `${process.name}: run awaited the release of ${lockName}, which is in the background`);
      // Callers that share a claim may have passed it on without a request.
      const isPassedOn = session.crowd !== undefined;
      if (!isPassedOn && !judge.recorder.isGivenBack(lease.owner))
        judge.violated("L3", `${process.name}: run has settled and did not send the release of ${lockName}`);
      judge.decided("L3 of a release in the background");
      world.onRunSettled?.(process);
    }
    const outcome = await world.releases.of(lease);
    if (outcome === "released" || outcome === "expired-unclaimed") return outcome;
    // The callback runs after the event.
    await process.sleep(1);
    if (this.#told !== undefined) throw this.#told.error;
    judge.violated(
      "S4",
      `${process.name}: the release of ${lockName} is ${outcome}, and onReleaseError was not called`,
    );
    throw new StoreError(lockName, { mayHaveRun: true, transient: false, cause: outcome });
  }
}
