/** J08: more waiters of one name than anybody has in earnest, in one process and over fifty. */

import type { Injection } from "../injection.js";
import type { Client, Stage } from "../stage.js";
import { type Grip, letGo, takeAll, twoClients } from "./directed.js";
import { waitAtALatch } from "./latch-crowd.js";
import { serverOf, strikeOver } from "./striking.js";

/** Each is a process of node with connections of its own. */
const PROCESSES = 50;
const WAITERS_IN_ONE = 1_000;
const WAITERS_IN_EACH = 20;
/** All of them have asked by then; asking at the same instant, they would be a stampede and not a queue. */
const GATHER_LEASES = 10;
const HELD_LEASES = 20;
/** Long enough for most of them to be served one after the other on a busy machine. */
const PATIENCE_LEASES = 50;
/** Lease lengths until the queue counts as no longer growing. */
const GROWN_LEASES = 20;

/** Fifty processes on a few cores answer late, and a request that is given up and sent again makes that worse. */
const COMMAND_TIMEOUT_MS = 5_000;

interface Crowd {
  readonly lockName: string;
  /** How many calls are open. */
  waiting: number;
  granted: number;
  gaveUp: number;
}

/** Waits and gives back what it is granted; every fourth is aborted at some time, in the queue or as its turn comes. */
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
  // Its lease may be over by then, on a machine that is busy enough.
  await client.release(taken.leaseId).catch(() => {});
}

/** Keeps the lock until so many wait for it, as the server sees it, or it has been long enough. @returns the most seen */
async function gather(stage: Stage, grip: Grip, crowd: Crowd, wanted: number): Promise<number> {
  const { leaseMs, peer } = stage;
  const server = serverOf(stage);
  const queue = `${stage.keyPrefix(crowd.lockName)}:queue`;
  const endMs = stage.nowMs() + GROWN_LEASES * leaseMs;
  let most = 0;
  for (let count = 0; most < wanted && stage.nowMs() < endMs; count += 1) {
    await stage.sleep(leaseMs / 2);
    // Of a peer, and of a quorum, there is no queue to look at, only calls that have not come back.
    const hasQueue = peer === undefined && stage.topology.quorum === undefined;
    most = Math.max(most, hasQueue ? Number(await server.command("ZCARD", queue)) : crowd.waiting);
    if (count % 4 === 3)
      await Promise.all(grip.taken.map(({ leaseId }) => grip.client.extend(leaseId, HELD_LEASES * leaseMs)));
  }
  return most;
}

/** How many requests of locks the server has carried out. */
async function requestCount(stage: Stage): Promise<number> {
  const info = String(await serverOf(stage).command("INFO", "commandstats"));
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(info)?.[1] ?? 0);
}

/**
 * A thousand waiters in one process, and another thousand over fifty, of one name, which somebody holds until they all
 * stand in the queue; then each is granted, is aborted, or is told that it waited too long.
 *
 * What they leave behind is looked for at the end, as in every cell: in the keys, in the server's subscriptions, and in
 * the processes themselves. A legal order is not searched for: no search ends among so many.
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
    // Some have given up when the last has come.
    const wanted = 0.95 * callers.length;
    const most = await gather(stage, grip, crowd, wanted);
    await letGo(grip);
    await Promise.all(all);
    const requests = (await requestCount(stage)) - before;
    const isCrowd = most >= Math.min(WAITERS_IN_ONE, wanted) && crowd.granted > 0;
    const proof =
      `${most} of ${callers.length} in ${others.length + 1} processes waited at once for ${lockName}; ` +
      `${crowd.granted} were granted, ${crowd.gaveUp} gave up, ${requests} requests`;
    strikeOver(stage, "J08", "client", beganMs, isCrowd ? proof : null);
  },
};
