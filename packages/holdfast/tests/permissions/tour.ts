/** Uses every function of Holdfast once, to show what a Redis user may not do. */
import { randomUUID } from "node:crypto";
import { AcquireTimeoutError, LockError, StoreError } from "../../src/core/errors.js";
import type { Holdfast } from "../../src/holdfast.js";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS } from "../../src/testing/delays.js";
import { lockManager } from "../../src/web-locks/index.js";

/** Clients of one Redis user. */
export interface Tourists {
  readonly first: Holdfast;
  readonly second: Holdfast;
  /** Undefined in a cluster because its servers are not independent. */
  readonly quorum?: Holdfast;
  /** Deletes a key, as another client might. */
  forget(key: string): Promise<unknown>;
}

/** A step that failed. */
export interface Complaint {
  readonly step: string;
  readonly error: unknown;
  /** `StoreError.missingPermission` of the error, or of the reply of one of several servers. */
  readonly missing: string | undefined;
}

const PATIENT = { waitMs: LONG_MS };
/** For waits that must time out, on a server with fifty concurrent users. */
const BRIEF = { waitMs: SOON_MS / 2 };

type Step = (here: Tourists, name: string) => Promise<unknown>;

const STEPS: Readonly<Record<string, Step>> = {
  async "a mutex is handed over"({ first, second }, name) {
    const lease = await first.mutex(name).acquire();
    const next = second.mutex(name).acquire(PATIENT);
    await waits(next, () => first.mutex(name).inspect());
    await lease.extend(60_000);
    await lease.release();
    await (await next).release();
  },
  async "a waiter gives up"({ first, second }, name) {
    const lease = await first.mutex(name).acquire();
    const controller = new AbortController();
    const giving = second.mutex(name).acquire({ ...PATIENT, signal: controller.signal });
    await waits(giving, () => first.mutex(name).inspect());
    controller.abort("enough");
    await giving.catch((reason: unknown) => {
      if (reason !== "enough") throw reason;
    });
    await lease.release();
  },
  async "a wait ends in vain"({ first, second }, name) {
    const lease = await first.mutex(name).acquire();
    await second
      .mutex(name)
      .acquire(BRIEF)
      .catch((error: unknown) => expected(error, "ERR_LOCK_ACQUIRE_TIMEOUT"));
    await lease.release();
  },
  async "a mutex goes to another process and is taken away there"({ first, second }, name) {
    const lease = await first.mutex(name).acquire();
    const adopted = await second.adopt(lease.export());
    if (!(await first.mutex(name).forceRelease({ owner: adopted.owner }))) throw new Error("it was not released");
  },
  async "a signal is given"({ first, second }, name) {
    const waiting = first
      .mutex(name)
      .condition("ready")
      .wait(await first.mutex(name).acquire(), PATIENT);
    await waits(waiting, () => second.mutex(name).condition("ready").inspect());
    await second.mutex(name).run((lease) => second.mutex(name).condition("ready").signal(lease), PATIENT);
    await (await waiting).release();
  },
  async "a wait for a signal is given up"({ first }, name) {
    const waiting = first
      .mutex(name)
      .condition("ready")
      .wait(await first.mutex(name).acquire(), BRIEF);
    await waiting.catch((error: unknown) => expected(error, "ERR_LOCK_WAIT_TIMEOUT"));
  },
  async "several locks are held together"({ first }, name) {
    await first.multiLock([`{${name}}:a`, `{${name}}:b`]).run(() => {}, PATIENT);
  },
  async "permits are handed over"({ first, second }, name) {
    const semaphore = first.semaphore(name, { permits: 3 });
    const [one, two] = [await semaphore.acquire(), await semaphore.acquire({ permits: 2 })];
    const next = second.semaphore(name, { permits: 3 }).acquire({ ...PATIENT, permits: 2 });
    await waits(next, () => semaphore.inspect());
    await two.extend(60_000);
    await one.release();
    await two.release();
    const last = (await next).export();
    await (await first.adopt(last)).release();
    await semaphore.resize(2);
  },
  async "the dead hold no permits"({ first, second }, name) {
    await first.semaphore(name, { permits: 1 }).acquire({ leaseMs: 2 * BRIEF_LEASE_MS, renew: false });
    await (await second.semaphore(name, { permits: 1 }).acquire(PATIENT)).release();
  },
  async "permits are kept whose ends the server has lost"({ first, second, forget }, name) {
    const lease = await first.semaphore(name, { permits: 2 }).acquire();
    await forget(`hf:semaphore:{${name}}:holders`);
    await (await second.semaphore(name, { permits: 2 }).acquire(PATIENT)).release();
    await lease.release();
  },
  async "a holder of permits is released by force"({ first, second }, name) {
    const lease = await first.semaphore(name, { permits: 2 }).acquire();
    const other = await first.semaphore(name, { permits: 2 }).acquire();
    await second.semaphore(name, { permits: 2 }).forceRelease({ owner: lease.owner });
    await other.release();
  },
  async "a writer becomes a reader and back"({ first, second }, name) {
    const writer = await first.readWriteLock(name).write.acquire();
    const reader = second.readWriteLock(name).read.acquire(PATIENT);
    await waits(reader, () => first.readWriteLock(name).read.inspect());
    await writer.downgrade();
    await (await reader).release();
    await writer.tryUpgrade();
    await writer.release();
  },
  async "a read-write lock is stolen"({ first, second }, name) {
    const reader = await first.readWriteLock(name).read.acquire();
    await lockManager(second).request(name, { steal: true }, () => {});
    await reader.release().catch((error: unknown) => expected(error, "ERR_LOCK_LEASE_LOST"));
  },
  async "a latch opens"({ first, second }, name) {
    await first.countDownLatch(name).trySetCount(2);
    const waiting = second.countDownLatch(name).await(PATIENT);
    await waits(waiting, () => first.countDownLatch(name).inspect());
    await first.countDownLatch(name).countDown(1, { callerId: "a" });
    await first.countDownLatch(name).countDown(1, { callerId: "b" });
    await waiting;
  },
  async "a wait for a latch is given up"({ first }, name) {
    await first.countDownLatch(name).trySetCount(2);
    await first
      .countDownLatch(name)
      .await(BRIEF)
      .catch((error: unknown) => expected(error, "ERR_LOCK_WAIT_TIMEOUT"));
  },
  async "all parties of a barrier go on"({ first, second }, name) {
    const arriving = first.barrier(name, { parties: 2 }).arrive(PATIENT);
    await waits(arriving, async () => ({
      waiterCount: (await first.barrier(name, { parties: 2 }).inspect()).arrived.length,
    }));
    await second.barrier(name, { parties: 2 }).arrive(PATIENT);
    await arriving;
  },
  async "a barrier breaks and starts a new generation"({ first }, name) {
    const barrier = first.barrier(name, { parties: 2 });
    await barrier.arrive(BRIEF).catch((error: unknown) => expected(error, "ERR_LOCK_WAIT_TIMEOUT"));
    await barrier.reset();
  },
  async "a leader is seen, and resigns"({ first, second }, name) {
    const controller = new AbortController();
    const seen = second.election(name).observe({ signal: controller.signal });
    await seen.next();
    const leadership = await first.election(name).campaign("one", PATIENT);
    await first.election(name).proclaim(leadership, "two");
    await second.election(name).leader();
    await seen.next();
    await leadership.extend(60_000);
    await first.election(name).resign(leadership);
    await seen.return();
  },
  async "a quorum grants, and tells who waits"({ quorum }, name) {
    if (quorum === undefined) return;
    const lease = await quorum.redlock(name).acquire(PATIENT);
    const next = quorum.redlock(name).acquire(PATIENT);
    next.catch(() => {});
    await lease.extend(60_000);
    await lease.release();
    await (await next).release();
    await quorum.redlock(name).inspect();
  },
};

/**
 * Steps with a wait that must time out. Such a wait gets the reply to its last request only if that takes at most
 * 200 ms, so these steps run after the others, which keep this process busy.
 */
const ENDING_IN_VAIN: readonly string[] = [
  "a wait ends in vain",
  "a wait for a signal is given up",
  "a wait for a latch is given up",
  "a barrier breaks and starts a new generation",
];

/** Runs all steps except those in `without`. @returns the failures in any order */
export async function tour(
  tourists: Tourists,
  { without = [] }: { readonly without?: readonly string[] } = {},
): Promise<Complaint[]> {
  const { first, second, quorum } = tourists;
  // Opens connections and loads scripts before the steps because some have short timeouts.
  const locks = [first.mutex("warm"), second.mutex("warm"), ...(quorum === undefined ? [] : [quorum.redlock("warm")])];
  await Promise.allSettled(locks.map((lock) => lock.inspect()));
  const steps = Object.entries(STEPS).filter(([step]) => !without.includes(step));
  const walkAll = async (isLast: boolean): Promise<Complaint[]> => {
    const walks = steps.map(async ([step, walk]): Promise<Complaint[]> => {
      if (ENDING_IN_VAIN.includes(step) !== isLast) return [];
      try {
        await walk(tourists, `tour:${randomUUID()}`);
        return [];
      } catch (error) {
        return [{ step, error, missing: missingOf(error) }];
      }
    });
    return (await Promise.all(walks)).flat();
  };
  return [...(await walkAll(false)), ...(await walkAll(true))];
}

/** Formats each complaint as one line, so that a failed assertion shows it. */
export function shown(complaints: readonly Complaint[]): string[] {
  return complaints.map(({ step, missing, error }) => `${step}: lacks ${missing}: ${String(error)}`);
}

function missingOf(error: unknown): string | undefined {
  // A waiter that timed out fails with its own error. The refusal is its cause, which is why it names no holder.
  if (error instanceof AcquireTimeoutError) return missingOf(error.cause);
  return error instanceof StoreError ? error.missingPermission : undefined;
}

function expected(error: unknown, code: string): void {
  if (!(error instanceof LockError) || error.code !== code || error.cause !== undefined) throw error;
}

/**
 * Resolves when a client waits, or after a timeout, in which case the rest of the step shows why. Rejects if the wait
 * rejects.
 */
async function waits(pending: Promise<unknown>, look: () => Promise<{ readonly waiterCount: number }>): Promise<void> {
  let isOver = false;
  const failing = pending.then(
    () => {},
    (error: unknown) => {
      isOver = true;
      throw error;
    },
  );
  const endAtMs = performance.now() + SOON_MS / 4;
  const looking = (async () => {
    // On a busy machine, the time can pass before the waiter has sent its request. It needs only a few round trips.
    for (let looks = 0; !isOver && (looks < 100 || performance.now() < endAtMs); looks += 1) {
      if ((await look()).waiterCount > 0) return;
    }
  })();
  await Promise.race([looking, failing]);
  failing.catch(() => {});
}
