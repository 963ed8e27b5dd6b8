/** J23 to J27: restarts, and what the server remembers after each. */

import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import type { Injection, ServerChoices } from "../injection.js";
import type { ServerHandle, Stage } from "../stage.js";
import { leaseOfTwo, letGo, takeAll, twoClients, twoHolders } from "./directed.js";
import { contention, PROBE, runIdOf, serverOf, strikeOver } from "./striking.js";

/** A key that shows what a restart has kept. It belongs to no lock and does not expire. */
const MARK = `${PROBE}mark`;

/** Overrides the column's persistence, because data that must be forgotten must not be on disk. */
export const FORGETFUL: ServerChoices = { durability: "1n" };

/**
 * Restarts the server with `how`, and records what it remembers.
 *
 * @param isKept  whether the mark must exist afterward for the fault to be the intended one
 */
async function restartBy(
  stage: Stage,
  id: string,
  how: (server: ServerHandle) => Promise<void>,
  isKept: boolean,
): Promise<void> {
  const server = serverOf(stage);
  const before = await runIdOf(server);
  await server.command("SET", MARK, "1");
  const beganMs = stage.nowMs();
  await how(server);
  const after = await runIdOf(server);
  const isThere = (await server.command("EXISTS", MARK)) === 1;
  const hasStruck = after !== before && isThere === isKept;
  const memory = isThere ? "with its memory" : "with empty memory";
  strikeOver(stage, id, server.name, beganMs, hasStruck ? `run id ${before} became ${after}, ${memory}` : null);
}

async function killAndRestart(server: ServerHandle): Promise<void> {
  await server.kill();
  await server.restart();
}

/** J23: SHUTDOWN as configured, and a restart with the same files. */
export const cleanRestart: Injection = {
  row: "J23",
  work: contention,
  async strike(stage) {
    const outMs = stage.random.between(0, 1.5) * stage.leaseMs;
    const again = async (server: ServerHandle): Promise<void> => {
      await server.shutdown();
      await stage.sleep(outMs);
      await server.restart();
    };
    await restartBy(stage, "J23", again, true);
  },
};

/** J24: SIGKILL, and a restart with the same files. */
export const killedServer: Injection = {
  row: "J24",
  work: contention,
  strike: (stage) => restartBy(stage, "J24", killAndRestart, true),
};

/** A restart with empty memory, recorded as J25. */
export function emptyRestart(stage: Stage): Promise<void> {
  return restartBy(stage, "J25", killAndRestart, false);
}

/** The same, for one server after another if there are several independent ones. */
export async function allForget(stage: Stage): Promise<void> {
  const { quorum, servers } = stage.topology;
  if (quorum === undefined) return emptyRestart(stage);
  for (const index of servers.keys()) {
    quorum.aim(index);
    await emptyRestart(stage);
  }
}

/** J25: a restart with empty memory while a client holds the lock. */
export const forgetfulRestart: Injection = {
  row: "J25",
  servers: FORGETFUL,
  strike: (stage) => twoHolders(stage, () => emptyRestart(stage)),
};

/** J25q: the same, but the server stays out until every lease has ended. */
export const quietRestart: Injection = {
  row: "J25q",
  servers: FORGETFUL,
  work: contention,
  async strike(stage) {
    const again = async (server: ServerHandle): Promise<void> => {
      await server.kill();
      await stage.sleep(1.05 * stage.leaseMs);
      await server.restart();
    };
    await restartBy(stage, "J25q", again, false);
  },
};

/** J26: a restart with a file that was saved before the lock was acquired. */
export const staleRestart: Injection = {
  row: "J26",
  servers: FORGETFUL,
  async strike(stage) {
    // The server that completes the majority of `twoHolders`.
    stage.topology.quorum?.aim(stage.topology.quorum.majority - 1);
    const server = serverOf(stage);
    const file = join(server.directory, "dump.rdb");
    // A file from before the first lock has no lock data, which would be an empty memory and thus another row.
    const [first] = twoClients(stage);
    await letGo(await takeAll(stage, first, stage.newName(), leaseOfTwo(stage)));
    const before = Number(await server.command("INCR", MARK));
    await server.command("SAVE");
    await copyFile(file, `${file}.old`);
    await twoHolders(stage, async () => {
      await server.command("INCR", MARK);
      const beganMs = stage.nowMs();
      await server.kill();
      await copyFile(`${file}.old`, file);
      await server.restart();
      const after = Number(await server.command("GET", MARK));
      const proof = after === before ? `counter back from ${before + 1} to ${after}` : null;
      strikeOver(stage, "J26", server.name, beganMs, proof);
    });
  },
};

/** The server's timer syncs the file every second. */
const SYNCED_WITHIN_MS = 2_500;

/** A sync that is so slow that it has not finished when the power fails. */
const NEVER_MS = 60_000;

/** J27: a power failure, which loses everything that was not synced. */
export const powerLoss: Injection = {
  row: "J27",
  needsSyncShim: true,
  work: (stage) => ({ ...contention(stage), sessions: isSynced(stage) ? 2 : 0 }),
  strike: (stage) => (isSynced(stage) ? lossAtWork(stage) : lossOfUnsynced(stage)),
};

function isSynced({ cell }: Stage): boolean {
  return cell.column !== "1e";
}

/** Slow enough that a kill hits the server between a write and its sync; until then it does not reply to clients. */
const SLOW_MS = 300;

/** Everything with a reply was synced; writes without a reply may be lost. */
async function lossAtWork(stage: Stage): Promise<void> {
  const server = serverOf(stage);
  const before = await runIdOf(server);
  await server.command("SET", MARK, before);
  server.slowSyncs(SLOW_MS);
  // At least this write is lost, together with others that arrived with it or wait behind it.
  const unanswered = server.command("SET", `${PROBE}unanswered`, before).catch(() => {});
  await stage.sleep(stage.random.between(0.3, 0.9) * SLOW_MS);
  const beganMs = stage.nowMs();
  const { keptBytes, cutBytes } = await server.powerLoss();
  await unanswered;
  server.slowSyncs(0);
  await server.restart();
  const isKept = (await server.command("GET", MARK)) === before;
  const proof = isKept && (await runIdOf(server)) !== before ? `file cut by ${cutBytes} bytes to ${keptBytes}` : null;
  strikeOver(stage, "J27", server.name, beganMs, cutBytes > 0 ? proof : null);
}

/** A client was granted the lock, but the file does not contain the grant. */
async function lossOfUnsynced(stage: Stage): Promise<void> {
  const server = serverOf(stage);
  await server.command("SET", MARK, "1");
  // Lets the data that clients write before their first acquire become old enough to be synced.
  const [any] = stage.clients;
  const told = await any?.take({ lockName: stage.newName(), leaseMs: leaseOfTwo(stage), waitMs: stage.leaseMs });
  if (told !== undefined) await any?.release(told.leaseId);
  await stage.sleep(SYNCED_WITHIN_MS);
  await twoHolders(
    stage,
    async () => {
      const beganMs = stage.nowMs();
      const { keptBytes, cutBytes } = await server.powerLoss();
      server.slowSyncs(0);
      await server.restart();
      const proof = cutBytes > 0 ? `file cut by ${cutBytes} bytes to ${keptBytes}` : null;
      strikeOver(stage, "J27", server.name, beganMs, proof);
    },
    () => server.slowSyncs(NEVER_MS),
  );
}
