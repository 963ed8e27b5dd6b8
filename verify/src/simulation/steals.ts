/**
 * Runs in which some callers steal a read-write lock with a `holdfast/web-locks` request with `steal` (docs/adr/145).
 *
 * They are derived from the runs of the profile "promised", so a steal meets all of their faults and all ways to hold
 * and wait. Steals use their own random stream, for the same reason as in drawn-since.ts.
 */
import { type Lease, LeaseLostError, type ReleaseOutcome, StoreError } from "holdfast";
import { lockManager } from "holdfast/web-locks";
import { call, claimOf } from "./calling.js";
import type { FaultEvent } from "./fault-event.js";
import { holdProgram } from "./lease-program.js";
import type { Whose } from "./moving.js";
import type { Plan } from "./plan.js";
import { Random } from "./random.js";
import type { Scene } from "./scene.js";
import type { Session } from "./session.js";

/** Ids from here on belong to steals. */
const FIRST_ID = 7_001;
/** Ids from here on belong to lost messages. */
const FIRST_CUT_ID = 7_101;
/** The random stream: in the upper half of the seed space, which nothing else uses. */
const STREAM = 31 * 4_294_967_296;
/** Fewer than the steals that the server remembers per lock, which are about ten. */
const MOST = 7;
const LEASES = [250, 500, 1_000, 2_000] as const;
const BEGINS_UNTIL_MS = 8_000;
/** Upper bound for the duration of everything within one instant. */
const INSTANT_MS = 0.01;

/** The same plan with additional steals; unchanged for any kind but the read-write lock. */
export function withSteals(plan: Plan): Plan {
  if (plan.kind !== "read-write-lock") return plan;
  const random = new Random(plan.seed + STREAM);
  const leaseMs = random.pick(LEASES);
  const locks = 1 + Math.max(0, ...plan.sessions.map(({ lock }) => lock));
  const together = random.whole(0, BEGINS_UNTIL_MS - 2_000);
  const steals = Array.from({ length: random.whole(1, MOST) }, (_, place): Session => {
    const process = random.whole(0, plan.processCount - 1);
    return {
      id: FIRST_ID + place,
      way: "steal",
      // A process of protocol 0 has no such requests.
      process: process === plan.oldProcess ? (process + 1) % plan.processCount : process,
      lock: random.chance(0.8) ? 0 : random.whole(0, locks - 1),
      atMs: random.chance(0.4) ? together + random.whole(0, 100) : random.whole(0, BEGINS_UNTIL_MS),
      isTry: false,
      waitMs: Infinity,
      leaseMs,
      renew: true,
      abortAfterMs: null,
      holdMs: random.chance(0.3) ? random.whole(0, 20) : random.whole(1, leaseMs * 2),
      extendMs: random.chance(0.15) ? random.pick(LEASES) : null,
      end: random.chance(0.85) ? "release" : "force",
      amount: 4,
      other: random.whole(0, plan.processCount - 1),
    };
  });
  const renew = random.chance(0.7);
  const sessions = [...plan.sessions, ...steals.map((session) => ({ ...session, renew }))];
  const stolen = { ...plan, requests: { leaseMs, renew }, sessions: sessions.sort((a, b) => a.atMs - b.atMs) };
  return random.chance(0.2) ? withOnlyCuts(stolen, random) : stolen;
}

/**
 * The same plan with lost messages as the only faults, so that a former holder learns of the loss with its next
 * renewal.
 */
function withOnlyCuts(plan: Plan, random: Random): Plan {
  const cuts = Array.from(
    { length: random.whole(2, 6) },
    (_, place): FaultEvent => ({
      id: FIRST_CUT_ID + place,
      atMs: random.whole(0, BEGINS_UNTIL_MS),
      process: random.whole(0, plan.processCount - 1),
      what: "cut-inbox",
      backInMs: random.whole(100, 3_000),
      goneInMs: random.pick([0, 50, 2_000]),
    }),
  );
  return { ...plan, faults: cuts.sort((a, b) => a.atMs - b.atMs) };
}

/** Steals the lock, and holds it in the callback of the request. @param all  the weight of a writer */
export async function stealProgram(
  scene: Scene,
  all: number,
  forceRelease: (whose: Whose) => Promise<boolean>,
): Promise<void> {
  const request = new StealRequest(scene);
  const end = await call(scene, () => request.acquire(), Infinity, claimOf(scene));
  if (end === undefined) return;
  const { lease, attempt } = end;
  const view = scene.judge.granted(attempt, lease, scene.lockName, all, all, lease);
  await holdProgram(scene, lease, [view], { forceRelease, canMove: false }, () => request.release(lease));
}

/** Presents a request with `steal` as a caller that acquires and releases. */
class StealRequest {
  readonly #scene: Scene;
  #request: Promise<void> = Promise.resolve();
  #endWork: () => void = () => {};
  #lostMs: number | undefined;
  #rejectedMs = Infinity;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** Resolves when the callback begins. The callback continues until `release`. */
  acquire(): Promise<Lease> {
    const { member, lockName, world } = this.#scene;
    return new Promise((resolve, reject) => {
      const work = (_: unknown, lease: Lease | null): Promise<void> =>
        new Promise((end) => {
          // Only requests with `ifAvailable` may get null.
          if (lease === null) throw new Error(`a steal of ${lockName} got no lock`);
          this.#endWork = end;
          const lost = (): void => {
            this.#lostMs = world.nowMs;
          };
          lease.signal.addEventListener("abort", lost, { once: true });
          resolve(lease);
        });
      this.#request = lockManager(member.holdfast).request(lockName, { steal: true }, work);
      this.#request.catch((error: unknown) => {
        this.#rejectedMs = world.nowMs;
        reject(error);
      });
    });
  }

  /**
   * Ends the callback. If the lock was lost before, checks that the request has rejected at that instant as the
   * specification says; otherwise, that it resolves.
   *
   * @returns the outcome of the release, when it is known
   */
  async release(lease: Lease): Promise<ReleaseOutcome> {
    const { judge, world, member, lockName } = this.#scene;
    const { name } = member.process;
    const wasHeld = lease.validForMs() > 0;
    const lostMs = this.#lostMs;
    const endedMs = world.nowMs;
    this.#endWork();
    const error = await this.#request.catch((reason: unknown) => reason);
    const isHeard = judge.network.lastHeard(lease.owner, "given back") >= endedMs;
    if (lostMs !== undefined) {
      judge.decided("S4 of a request");
      if (this.#rejectedMs - lostMs > INSTANT_MS)
        judge.violated(
          "S4",
          `${name}: ${lockName} was lost at ${lostMs.toFixed(1)} ms, but its request did not reject`,
        );
    }
    if (error === undefined) {
      if (!wasHeld) judge.violated("S4", `${name}: a request for ${lockName} resolved, although its lock was lost`);
      if (isHeard) return "released";
      throw new StoreError(lockName, { mayHaveRun: true, transient: true, cause: "no answer" });
    }
    const cause = error instanceof DOMException && error.name === "AbortError" ? error.cause : error;
    if (!(cause instanceof LeaseLostError)) {
      judge.violated("S4", `${name}: the request of a lock that was lost, ${lockName}, rejected with ${String(error)}`);
      throw error;
    }
    // A lease that ended on the clock of its process may still exist on the server, which is notified without waiting
    // for the reply.
    if (cause.reason === "expired" && !isHeard)
      throw new StoreError(lockName, { mayHaveRun: true, transient: true, cause });
    throw cause;
  }
}
