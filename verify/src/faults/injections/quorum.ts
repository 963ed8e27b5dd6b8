/** Faults that only exist with a majority of independent servers: rules of Redlock, and objections to it. */

import { COMMAND_TIMEOUT_MS } from "../clients.js";
import type { Injection } from "../injection.js";
import { EPS_MS, PATIENCE_MS } from "../judging/grounds.js";
import type { Client, Matches, QuorumControls, ServerHandle, Stage, Taken } from "../stage.js";
import { forwardStep, stepBy } from "./clock.js";
import { letGo, takeAll, tryAfter, twoClients, twoHolders } from "./directed.js";
import { FORGETFUL, forgetfulRestart } from "./durability.js";
import { contention, isAbout, pauseMs, runIdOf, serverOf, strikeOver, untilGivenUp } from "./striking.js";

function quorumOf({ topology: { quorum } }: Stage): QuorumControls {
  if (quorum === undefined) throw new Error("there is no quorum here");
  return quorum;
}

/** `count` random servers. */
function some(stage: Stage, count: number): ServerHandle[] {
  const left = [...stage.topology.servers];
  return Array.from({ length: count }, () => {
    const one = stage.random.pick(left);
    left.splice(left.indexOf(one), 1);
    return one;
  });
}

/** The largest number of servers that may fail. */
function minority(stage: Stage): ServerHandle[] {
  return some(stage, stage.topology.servers.length - quorumOf(stage).majority);
}

/** The longest lease of new clients. A longer one would keep returning servers out for longer. */
const NEW_LEASES = 2;
/** The longest time to acquire a new lock: two rounds, because the servers' clocks differ. */
const MOST_TAKEN_MS = 2 * COMMAND_TIMEOUT_MS + EPS_MS;

/** L5: a new client is granted a free lock without waiting for unreachable servers. */
async function isServed(stage: Stage): Promise<void> {
  const client = stage.random.pick(stage.clients);
  const lockName = stage.newName();
  const beganMs = stage.nowMs();
  const taken = await client.take({ lockName, leaseMs: NEW_LEASES * stage.leaseMs, waitMs: PATIENCE_MS });
  const tookMs = stage.nowMs() - beganMs;
  if (taken !== undefined) await client.release(taken.leaseId);
  const isInTime = taken !== undefined && tookMs <= MOST_TAKEN_MS;
  const what = taken === undefined ? `was refused: ${client.lastRefusal}` : `was granted after ${tookMs.toFixed(0)} ms`;
  stage.decide("L5", lockName, isInTime ? undefined : `"${lockName}" is new, most servers answer, and it ${what}`);
}

/** R3: a minority hangs; clients wait at most one command timeout for these servers. */
export const hungMinority: Injection = {
  row: "R3",
  work: contention,
  async strike(stage) {
    const hung = minority(stage);
    const beganMs = stage.nowMs();
    for (const server of hung) server.freeze();
    const pings = hung.map((server) => server.command("PING"));
    try {
      await isServed(stage);
      await stage.sleep(pauseMs(stage));
    } finally {
      for (const server of hung) server.resume();
    }
    await Promise.all(pings);
    const names = hung.map(({ name }) => name).join(" and ");
    strikeOver(stage, "J18", names, beganMs, `${names} hung for ${(stage.nowMs() - beganMs).toFixed(0)} ms`);
  },
};

/** R11: a minority is killed and returns with its data. */
export const killedMinority: Injection = {
  row: "R11",
  work: contention,
  async strike(stage) {
    const dead = minority(stage);
    const before = await Promise.all(dead.map(runIdOf));
    const beganMs = stage.nowMs();
    await Promise.all(dead.map((server) => server.kill()));
    try {
      await isServed(stage);
      await stage.sleep(pauseMs(stage));
    } finally {
      await Promise.all(dead.map((server) => server.restart()));
    }
    const after = await Promise.all(dead.map(runIdOf));
    // They stay out for as long as the longest lease lasts, and no other server may be missing during that time.
    await stage.sleep(2 * NEW_LEASES * stage.leaseMs + EPS_MS);
    const isNew = after.every((id, index) => id !== before[index]);
    const names = dead.map(({ name }) => name).join(" and ");
    strikeOver(stage, "J24", names, beganMs, isNew ? `${names} killed, and back on their files` : null);
  },
};

type Away = (servers: readonly ServerHandle[], stage: Stage) => Promise<() => Promise<void>>;

/** Ways to make a server unreachable; each returns the way back. */
const AWAY: Readonly<Record<"killed" | "hung" | "cut off", Away>> = {
  async killed(servers) {
    await Promise.all(servers.map((server) => server.kill()));
    return async () => {
      await Promise.all(servers.map((server) => server.restart()));
    };
  },
  async hung(servers) {
    for (const server of servers) server.freeze();
    return async () => {
      for (const server of servers) server.resume();
      await Promise.all(servers.map((server) => server.command("PING")));
    };
  },
  async "cut off"(servers, stage) {
    const lines = servers.map((server) => quorumOf(stage).proxies[stage.topology.servers.indexOf(server)]);
    for (const line of lines) line?.stall("both");
    return async () => {
      for (const line of lines) line?.resume();
    };
  },
};

/** An acquire without a majority makes a last attempt, releases its votes, and fails. */
const LAST_WORD_MS = 3 * COMMAND_TIMEOUT_MS;

/** R13: no majority for a while. Each outage costs at most one lease of availability, and nothing stays locked. */
export const lostMajority: Injection = {
  row: "R13",
  work: contention,
  async strike(stage) {
    const { leaseMs } = stage;
    const how = stage.random.pick(["killed", "hung", "cut off"] as const);
    const away = some(stage, quorumOf(stage).majority);
    const client = stage.random.pick(stage.clients);
    const refusedName = stage.newName();
    const beganMs = stage.nowMs();
    const back = await AWAY[how](away, stage);
    let word = "";
    try {
      const askedMs = stage.nowMs();
      const taken = await client.take({ lockName: refusedName, leaseMs, waitMs: leaseMs });
      const tookMs = stage.nowMs() - askedMs;
      word = client.lastRefusal ?? "";
      const isRight = taken === undefined && /QuorumError/.test(word) && tookMs <= leaseMs + LAST_WORD_MS + EPS_MS;
      const what = taken === undefined ? `was refused after ${tookMs.toFixed(0)} ms: ${word}` : "was granted";
      stage.decide(
        "L4",
        refusedName,
        isRight ? undefined : `"${refusedName}", with a minority of the servers, ${what}`,
      );
    } finally {
      await back();
    }
    const backMs = stage.nowMs();
    const lockName = stage.newName();
    const mostMs = leaseMs + PATIENCE_MS + EPS_MS;
    let taken: Taken | undefined;
    // A caller that gets no majority for a whole lease gives up, whatever its wait limit is.
    while (taken === undefined && stage.nowMs() < backMs + mostMs)
      taken = await client.take({ lockName, leaseMs, waitMs: PATIENCE_MS });
    const costMs = stage.nowMs() - backMs;
    if (taken !== undefined) await client.release(taken.leaseId);
    const isInTime = taken !== undefined && costMs <= mostMs;
    const what = taken === undefined ? `nothing: ${client.lastRefusal}` : `${costMs.toFixed(0)} ms later`;
    stage.decide("L1", lockName, isInTime ? undefined : `a majority was back, and ${client.name} was granted ${what}`);
    const proof = `${away.length} servers ${how} for ${(backMs - beganMs).toFixed(0)} ms, granted again after ${costMs.toFixed(0)} ms`;
    strikeOver(stage, "J18", away.map(({ name }) => name).join(" and "), beganMs, word === "" ? null : proof);
  },
};

/** R8: more processes want one lock than the servers can serve at the same time. judging/contenders.ts judges it. */
export const contenders: Injection = {
  row: "R8",
  clientCount: 20,
  leastMs: 60_000,
  work: (stage) => ({
    ...contention(stage),
    names: 1,
    sessions: 1,
    // A server must reply within a sixth of the lease, and so many processes keep this machine busy.
    leaseMs: 5 * stage.leaseMs,
    holdMs: 10,
    waitMs: 50 * stage.leaseMs,
  }),
  async strike(stage) {
    const beganMs = stage.nowMs();
    const calls = async (): Promise<number> => {
      const infos = stage.topology.servers.map((server) => server.command("INFO", "commandstats"));
      const counts = (await Promise.all(infos)).map((info) => /^cmdstat_psetex:calls=(\d+)/m.exec(String(info))?.[1]);
      return Math.min(...counts.map((count) => Number(count ?? 0)));
    };
    const before = await calls();
    await stage.sleep(10 * stage.leaseMs);
    const made = (await calls()) - before;
    const proof = `${stage.clients.length} processes; a server wrote ${made} times`;
    strikeOver(stage, "R8", "clients", beganMs, made > stage.clients.length ? proof : null);
  },
};

/** K3: five servers, of which a holder reaches three, and the clock of one of them jumps. */
export const jumpingVoter: Injection = { ...forwardStep, row: "K3" };

/** K4: a voter loses its memory, and votes again immediately. */
export const forgetfulVoter: Injection = { ...forgetfulRestart, row: "K4" };

/** K5: a voter loses its memory and is kept out for the longest lease, but its clock jumps over that time. */
export const jumpingQuiet: Injection = {
  row: "K5",
  servers: FORGETFUL,
  needsClockShim: true,
  async strike(stage) {
    let forgotten: Promise<void> | undefined;
    await twoHolders(stage, async (_, leaseMs, holder) => {
      const server = serverOf(stage);
      const beganMs = stage.nowMs();
      const before = await runIdOf(server);
      await server.kill();
      await server.restart();
      // The first client that asks records the start of the time out, and relies on that record itself.
      await holder.take({ lockName: stage.newName(), leaseMs, waitMs: 0 });
      const stepped = await stepBy(stage, 1.5 * leaseMs);
      const isNew = (await runIdOf(server)) !== before;
      strikeOver(stage, "K5", server.name, beganMs, isNew && stepped !== null ? `restarted empty; ${stepped}` : null);
      // The client still keeps the server out, and would have no majority for the next acquire.
      forgotten = stage.sleep(leaseMs);
    });
    await forgotten;
  },
};

/** The length of a long lease, as a multiple of the others. */
const LONGER = 20;
/**
 * A server reports its uptime in whole seconds, so the time for which it is kept out may begin up to two seconds
 * late.
 */
const UPTIME_MS = 2_000;
/** More requests than one acquire sends. */
const MOST_REFUSED = 200;
const MARKER = "hf:lineage";

/** Waits until every server may grant. */
async function untilAllMayGrant(stage: Stage, client: Client, mostMs: number): Promise<void> {
  const mayGrant = async (server: ServerHandle): Promise<boolean> => {
    const [run, pending] = (await server.command("HMGET", MARKER, "run", "pending")) as (string | null)[];
    return run !== null && pending === null;
  };
  const endMs = stage.nowMs() + mostMs;
  while (stage.nowMs() < endMs) {
    const taken = await client.take({ lockName: stage.newName(), leaseMs: stage.leaseMs, waitMs: stage.leaseMs });
    if (taken !== undefined) await client.release(taken.leaseId);
    if ((await Promise.all(stage.topology.servers.map(mayGrant))).every(Boolean)) return;
    await stage.sleep(stage.leaseMs / 4);
  }
  throw new Error("not every server grants, so the run cannot show anything");
}

/** The longest lease that any server knows, in ms. */
async function longestKnown({ topology: { servers } }: Stage): Promise<number> {
  const known = await Promise.all(servers.map((server) => server.command("HGET", MARKER, "longestMs")));
  return Math.max(...known.map(Number));
}

/** During `during`, servers outside the first majority do not reply to requests that decide that lock. */
async function withoutTheRest<Result>(stage: Stage, lockName: string, during: () => Promise<Result>): Promise<Result> {
  const { majority, proxies } = quorumOf(stage);
  const isOfLock = isAbout(stage, lockName, "acquire");
  const asks: Matches = (words) => isOfLock(words) || words[1] === "server/lineage";
  const armed = untilGivenUp(asks);
  for (const proxy of proxies.slice(majority))
    for (let count = 0; count < MOST_REFUSED; count += 1)
      void proxy.answerError(armed.matches, "LOADING Redis is loading the dataset in memory");
  try {
    return await during();
  } finally {
    armed.giveUp();
  }
}

/**
 * K8: a much longer lease than all others was granted by a bare majority. One of those servers loses its memory, the
 * others are unreachable, and the reachable ones do not know such a long lease.
 */
export const forgottenLength: Injection = {
  row: "K8",
  servers: FORGETFUL,
  async strike(stage) {
    const { majority, proxies, aim } = quorumOf(stage);
    const [holder, rival] = twoClients(stage);
    const knownMs = await longestKnown(stage);
    // Longer than any server knows so far.
    const longMs = Math.max(LONGER * stage.leaseMs, 2 * knownMs);
    await untilAllMayGrant(stage, rival, knownMs + LONGER * stage.leaseMs);
    const lockName = stage.newName();
    const held = await withoutTheRest(stage, lockName, () => takeAll(stage, holder, lockName, longMs, false));
    aim(majority - 1);
    const server = serverOf(stage);
    const before = await runIdOf(server);
    const beganMs = stage.nowMs();
    await server.kill();
    await server.restart();
    const cut = proxies.slice(0, majority - 1);
    for (const line of cut) line.stall("both");
    const endMs = stage.nowMs() + UPTIME_MS + 3 * stage.leaseMs;
    let taken = await tryAfter(stage, rival, lockName, stage.leaseMs);
    while (taken.taken.length === 0 && stage.nowMs() < endMs)
      taken = await tryAfter(stage, rival, lockName, stage.leaseMs);
    const isNew = (await runIdOf(server)) !== before;
    const proof = `${server.name} restarted empty, ${cut.length} cut off, leases of ${longMs} and ${stage.leaseMs} ms`;
    strikeOver(stage, "K8", server.name, beganMs, isNew ? proof : null);
    await letGo(held, taken);
    for (const line of cut) line.resume();
  },
};
