/** J01 to J06: faults of client processes. */

import type { Injection } from "../injection.js";
import { PATIENCE_MS } from "../judging/grounds.js";
import type { Client, Stage, Work } from "../stage.js";
import { letGo, takeAll, tryAfter, twoClients } from "./directed.js";
import { contention, freezeFor, happens, isAbout, keysOf, pauseMs, strikeOver, untilGivenUp } from "./striking.js";

/** Freezes the client as soon as it has sent a matching request about that lock. */
async function freezeAt(stage: Stage, client: Client, lockName: string, verb: string, forMs: number): Promise<void> {
  const armed = untilGivenUp(isAbout(stage, lockName, verb));
  const isMet = await happens(stage, stage.topology.proxy.meet(armed.matches), 2 * stage.leaseMs);
  armed.giveUp();
  const beganMs = stage.nowMs();
  const proof = await freezeFor(stage, client, forMs);
  const where = stage.peer === undefined ? `inside ${verb}` : "with a request on its way";
  strikeOver(stage, "J01", client.name, beganMs, isMet && proof !== null ? `${proof} ${where}` : proof);
}

/**
 * Freezes a client between sending an acquire or extend and receiving the reply, while another client wants the lock.
 */
async function freezeWithin(stage: Stage, verb: "acquire" | "extend"): Promise<void> {
  const lockName = stage.newName();
  const [client, rival] = twoClients(stage);
  const { leaseMs } = stage;
  const forMs = pauseMs(stage);
  if (verb === "acquire") {
    const frozen = freezeAt(stage, client, lockName, verb, forMs);
    // After the freeze, another client may hold the lock, so the wait must be short.
    const waitMs = stage.topology.servers.length === 1 ? leaseMs : undefined;
    const asked = takeAll(stage, client, lockName, leaseMs, undefined, waitMs).catch(() => undefined);
    await frozen;
    const after = await tryAfter(stage, rival, lockName, leaseMs);
    const grip = await asked;
    await letGo(after, ...(grip === undefined ? [] : [grip]));
    return;
  }
  const grip = await takeAll(stage, client, lockName, leaseMs);
  const frozen = freezeAt(stage, client, lockName, verb, forMs);
  const extended = client.extend(grip.taken[0]?.leaseId ?? 0, leaseMs).catch(() => {});
  const after = await tryAfter(stage, rival, lockName, leaseMs);
  await frozen;
  await extended;
  await letGo(grip, after);
}

/** Freezes a holder right after the grant, so that its code continues only after the lease has ended. */
async function freezeHolder(stage: Stage): Promise<void> {
  const lockName = stage.newName();
  const [client, rival] = twoClients(stage);
  const grip = await takeAll(stage, client, lockName, stage.leaseMs);
  const beganMs = stage.nowMs();
  const frozen = freezeFor(stage, client, pauseMs(stage));
  const after = await tryAfter(stage, rival, lockName, stage.leaseMs);
  strikeOver(stage, "J01", client.name, beganMs, await frozen);
  await letGo(grip, after);
}

/** J01: a holder freezes for 0.5 to 3 leases, at random and at critical moments. */
export const frozenHolder: Injection = {
  row: "J01",
  work: contention,
  async strike(stage) {
    const where = stage.random.pick(["anywhere", "anywhere", "granted", "acquire", "extend"] as const);
    if (where === "granted") return await freezeHolder(stage);
    if (where !== "anywhere") return await freezeWithin(stage, where);
    await freezeAnywhere(stage);
  },
};

/** A process freezes at an arbitrary moment, without notice. */
export async function freezeAnywhere(stage: Stage): Promise<void> {
  const client = stage.random.pick(stage.clients);
  const beganMs = stage.nowMs();
  strikeOver(stage, "J01", client.name, beganMs, await freezeFor(stage, client, pauseMs(stage)));
}

/** J02: a waiter freezes in the queue until after its own grant. */
export const frozenWaiter: Injection = {
  row: "J02",
  work: contention,
  async strike(stage) {
    const { leaseMs } = stage;
    const [client, rival] = twoClients(stage);
    if (stage.cell.letter === "l") {
      const beganMs = stage.nowMs();
      strikeOver(stage, "J02", client.name, beganMs, await freezeFor(stage, client, pauseMs(stage)));
      return;
    }
    const lockName = stage.newName();
    const grip = await takeAll(stage, rival, lockName, 3 * leaseMs);
    const armed = untilGivenUp(isAbout(stage, lockName, "acquire"));
    const asked = happens(stage, stage.topology.proxy.meet(armed.matches), leaseMs);
    const waiting = client.take({ lockName, leaseMs, renew: stage.cell.letter === "a", waitMs: 6 * leaseMs });
    const isMet = await asked;
    armed.giveUp();
    // Peers and quorums have no queue on the server, so a client that has requested a held lock counts as waiting.
    const isQueued =
      stage.peer === undefined && stage.topology.quorum === undefined
        ? await sees(stage, async () => (await keysOf(stage, lockName)).some((key) => key.endsWith(":queue")))
        : isMet;
    const beganMs = stage.nowMs();
    const frozen = freezeFor(stage, client, pauseMs(stage));
    await stage.sleep(stage.random.between(0, leaseMs / 2));
    await letGo(grip);
    const after = await tryAfter(stage, rival, lockName, leaseMs);
    const proof = await frozen;
    strikeOver(stage, "J02", client.name, beganMs, isQueued && proof !== null ? `${proof} in the queue` : null);
    await letGo(after);
    const taken = await waiting;
    if (taken !== undefined) await letGo({ client, lockName, taken: [taken] });
  },
};

/** Polls for two leases until `ask` is true. */
async function sees(stage: Stage, ask: () => Promise<boolean>): Promise<boolean> {
  const endMs = stage.nowMs() + 2 * stage.leaseMs;
  while (stage.nowMs() < endMs) {
    if (await ask()) return true;
    await stage.sleep(2);
  }
  return false;
}

/** A holder disappears, and another client must be granted the lock after the lease ends. */
async function leaveBehind(stage: Stage, go: (client: Client) => Promise<void>): Promise<string | null> {
  const [client, rival] = twoClients(stage);
  const { pid } = client;
  if ("lb".includes(stage.cell.letter)) {
    await go(client);
    await again(stage, client);
    return `process ${pid} gone in the middle of its work`;
  }
  const lockName = stage.newName();
  await takeAll(stage, client, lockName, stage.leaseMs);
  await go(client);
  const left = await keysOf(stage, lockName);
  // The wait is long enough that it cannot time out before the next poll, even if no notification arrives.
  await letGo(await tryAfter(stage, rival, lockName, stage.leaseMs, 2 * (stage.leaseMs + PATIENCE_MS)));
  await again(stage, client);
  return left.length > 0 ? `process ${pid} gone, ${left.length} keys left behind` : null;
}

async function again(stage: Stage, client: Client): Promise<void> {
  await client.start();
  await client.work(contention(stage));
}

/** J03: a holder is killed. */
export const killedHolder: Injection = {
  row: "J03",
  work: contention,
  async strike(stage) {
    const beganMs = stage.nowMs();
    const proof = await leaveBehind(stage, (client) => client.kill());
    strikeOver(stage, "J03", "client", beganMs, proof);
  },
};

/**
 * A workload in which all processes want one name, with several callers each. If they retain mutexes, there are two
 * names and one caller per process, because a lock that others wait for is not retained. For releases without a script,
 * there are many names, for the same reason.
 */
function hotName(stage: Stage): Work {
  const chosen: Readonly<Record<string, Pick<Work, "names" | "sessions">>> = {
    "J03-retained": { names: 2, sessions: 1 },
    "J03-native": { names: 12, sessions: 2 },
  };
  return { ...contention(stage), ...(chosen[stage.cell.row] ?? { names: 1, sessions: 3 }) };
}

/**
 * J03-background: processes are killed at random moments, one or two at a time, and when the server's proxy receives
 * a release whose `run` has already settled. Others wait for that lock.
 */
export const killsOnAHotName: Injection = {
  row: "J03-background",
  clientCount: 4,
  work: hotName,
  async strike(stage) {
    const [first, second] = twoClients(stage);
    if (stage.random.chance(0.5)) return await killWhileReleasing(stage, first, second);
    const killed = stage.random.chance(0.5) ? [first] : [first, second];
    await Promise.all(killed.map((client) => killAnywhere(stage, client)));
  },
};

async function killAnywhere(stage: Stage, client: Client): Promise<void> {
  const beganMs = stage.nowMs();
  const { pid } = client;
  await client.kill();
  await backOnHotName(stage, client, beganMs, `process ${pid} killed at any moment`);
}

/** J03-retained: one or two processes are killed at any moment, while they hold, retain or wait for one of two names. */
export const killsWhileRetaining: Injection = {
  row: "J03-retained",
  clientCount: 4,
  work: hotName,
  async strike(stage) {
    const [first, second] = twoClients(stage);
    const killed = stage.random.chance(0.5) ? [first] : [first, second];
    await Promise.all(killed.map((client) => killAnywhere(stage, client)));
  },
};

/** J03-native: the same on many names. On a server with DELIFEQ, most locks are released without a script (docs/adr/149). */
export const killsOnManyNames: Injection = { ...killsWhileRetaining, row: "J03-native" };

async function killWhileReleasing(stage: Stage, client: Client, rival: Client): Promise<void> {
  const { leaseMs } = stage;
  const beganMs = stage.nowMs();
  const { pid } = client;
  const lockName = stage.newName();
  const grip = await takeAll(stage, client, lockName, leaseMs);
  const after = tryAfter(stage, rival, lockName, leaseMs, 2 * (leaseMs + PATIENCE_MS));
  const armed = untilGivenUp(isAbout(stage, lockName, "release"));
  const isMet = happens(stage, stage.topology.proxy.meet(armed.matches), 2 * leaseMs);
  const released = letGo(grip).catch(() => {});
  const isSent = await isMet;
  armed.giveUp();
  await client.kill();
  await Promise.all([released, after.then((taken) => letGo(taken))]);
  const proof = `process ${pid} killed with a release on its way`;
  await backOnHotName(stage, client, beganMs, isSent ? proof : null);
}

async function backOnHotName(stage: Stage, client: Client, beganMs: number, proof: string | null): Promise<void> {
  strikeOver(stage, "J03", client.name, beganMs, proof);
  await client.start();
  await client.work(hotName(stage));
}

/** J04: a process ends without releasing. */
export const vanishedHolder: Injection = {
  row: "J04",
  work: contention,
  async strike(stage) {
    const how = stage.random.pick(["exit", "error"] as const);
    const beganMs = stage.nowMs();
    const proof = await leaveBehind(stage, (client) => client.vanish(how));
    strikeOver(stage, "J04", "client", beganMs, proof === null ? null : `${proof} by ${how}`);
  },
};

/** J05: the event loop is blocked for longer than a lease. */
export const blockedLoop: Injection = {
  row: "J05",
  work: contention,
  async strike(stage) {
    const client = stage.random.pick(stage.clients);
    const forMs = stage.random.between(1, 3) * stage.leaseMs;
    const beganMs = stage.nowMs();
    await client.block(forMs);
    const tookMs = stage.nowMs() - beganMs;
    strikeOver(
      stage,
      "J05",
      client.name,
      beganMs,
      tookMs >= forMs ? `loop stood still for ${forMs.toFixed(0)} ms` : null,
    );
  },
};

/**
 * J06: the wall clock of a client jumps. The validity that it reports for its lease may become shorter, but never
 * longer.
 */
export const steppedClient: Injection = {
  row: "J06",
  work: contention,
  async strike(stage) {
    const { leaseMs, random } = stage;
    const client = random.pick(stage.clients);
    const offsetMs = random.pick([-1, 1]) * random.pick([leaseMs / 2, 2 * leaseMs, 3_600_000]);
    const beganMs = stage.nowMs();
    await client.stepWall(offsetMs);
    await stage.sleep(random.between(0.5, 2) * leaseMs);
    await client.stepWall(0);
    strikeOver(stage, "J06", client.name, beganMs, `wall clock off by ${offsetMs} ms, monotonic clock untouched`);
  },
};
