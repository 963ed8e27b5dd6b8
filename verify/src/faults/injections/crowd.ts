/** J08: an unrealistically large number of waiters for one name, in one process and across fifty. */

import type { Injection } from "../injection.js";
import type { Client, Stage } from "../stage.js";
import { type Grip, letGo, takeAll, twoClients } from "./directed.js";
import { waitAtALatch } from "./latch-crowd.js";
import { serverOf, strikeOver } from "./striking.js";

/** Each is a Node process with its own connections. */
const PROCESSES = 50;
const WAITERS_IN_ONE = 1_000;
const WAITERS_IN_EACH = 20;
/** The calls are spread over this time. At the same instant they would be a stampede, not a queue. */
const GATHER_LEASES = 10;
const HELD_LEASES = 20;
/** Long enough for a busy machine to serve most of them sequentially. */
const PATIENCE_LEASES = 50;
/** After this many leases, the queue is considered complete. */
const GROWN_LEASES = 20;

/** Fifty processes on a few cores reply late, and retries after timeouts would make that worse. */
const COMMAND_TIMEOUT_MS = 5_000;

interface Crowd {
  readonly lockName: string;
  /** The number of open calls. */
  waiting: number;
  granted: number;
  gaveUp: number;
}

/** Waits and releases what it is granted. Every fourth call is aborted, in the queue or just as it is granted. */
async function wait(stage: Stage, crowd: Crowd, client: Client): Promise<void> {
  const { leaseMs, random } = stage;
  const mode = random.chance(0.5) ? ("read" as const) : ("write" as const);
  const abort = random.chance(0.25) ? { abortMs: random.between(GATHER_LEASES, PATIENCE_LEASES) * leaseMs } : {};
  const beginsMs = random.between(0, GATHER_LEASES) * leaseMs;
  await stage.sleep(beginsMs);
  crowd.waiting += 1;
  const taken = await client.take({
    lockName: crowd.lockName,
    leaseMs: HELD_LEASES * leaseMs,
    waitMs: PATIENCE_LEASES * leaseMs,
    mode,
    ...abort,
  });
  crowd.waiting -= 1;
  if (taken === undefined) {
    crowd.gaveUp += 1;
    return;
  }
  crowd.granted += 1;
  // On a busy machine the lease may have ended by then.
  await client.release(taken.leaseId).catch(() => {});
}

/** Holds the lock until enough callers wait, as seen by the server, or time is up. @returns the largest number seen */
async function gather(stage: Stage, grip: Grip, crowd: Crowd, wanted: number): Promise<number> {
  const { leaseMs, peer } = stage;
  const server = serverOf(stage);
  const queue = `${stage.keyPrefix(crowd.lockName)}:queue`;
  const endMs = stage.nowMs() + GROWN_LEASES * leaseMs;
  let most = 0;
  for (let count = 0; most < wanted && stage.nowMs() < endMs; count += 1) {
    await stage.sleep(leaseMs / 2);
    // For peers and quorums there is no queue to inspect, only open calls.
    const hasQueue = peer === undefined && stage.topology.quorum === undefined;
    most = Math.max(most, hasQueue ? Number(await server.command("ZCARD", queue)) : crowd.waiting);
    if (count % 4 === 3)
      await Promise.all(grip.taken.map(({ leaseId }) => grip.client.extend(leaseId, HELD_LEASES * leaseMs)));
  }
  return most;
}

/** How many lock requests the server has executed. */
async function requestCount(stage: Stage): Promise<number> {
  const info = String(await serverOf(stage).command("INFO", "commandstats"));
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(info)?.[1] ?? 0);
}

/**
 * A thousand waiters in one process, and another thousand across fifty, for a name that is held until all are queued.
 * Then each call is granted, aborted, or times out.
 *
 * As in every cell, the keys, the server's subscriptions and the processes are searched for leftovers. There is no
 * linearizability search, because it would not finish with so many operations.
 */
export const manyWaiters: Injection = {
  row: "J08",
  clientCount: PROCESSES + 2,
  commandTimeoutMs: COMMAND_TIMEOUT_MS,
  async strike(stage) {
    const { leaseMs } = stage;
    const [holder, one] = twoClients(stage);
    const others = stage.clients.filter((client) => client !== holder && client !== one);
    const callers = [
      ...Array.from({ length: WAITERS_IN_ONE }, () => one),
      ...others.flatMap((client) => Array.from({ length: WAITERS_IN_EACH }, () => client)),
    ];
    if (stage.cell.letter === "l") {
      const [gatherMs, patienceMs] = [GATHER_LEASES * leaseMs, PATIENCE_LEASES * leaseMs];
      return waitAtALatch(stage, holder, callers, { gatherMs, patienceMs, grownMs: GROWN_LEASES * leaseMs });
    }
    const lockName = stage.newName();
    const grip = await takeAll(stage, holder, lockName, HELD_LEASES * leaseMs);
    const beganMs = stage.nowMs();
    const before = await requestCount(stage);
    const crowd: Crowd = { lockName, waiting: 0, granted: 0, gaveUp: 0 };
    const all = callers.map((client) => wait(stage, crowd, client));
    // Some have timed out by the time the last one arrives.
    const wanted = 0.95 * callers.length;
    const most = await gather(stage, grip, crowd, wanted);
    await letGo(grip);
    await Promise.all(all);
    const requests = (await requestCount(stage)) - before;
    const isCrowd = most >= Math.min(WAITERS_IN_ONE, wanted) && crowd.granted > 0;
    const proof =
      `${most} of ${callers.length} in ${others.length + 1} processes waited at the same time for ${lockName}; ` +
      `${crowd.granted} were granted, ${crowd.gaveUp} gave up, ${requests} requests`;
    strikeOver(stage, "J08", "client", beganMs, isCrowd ? proof : null);
  },
};
