/** J23 to J27: restarts, and what the server remembers after each. */

import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import type { Injection, ServerHandle, Stage } from "../stage.js";
import { letGo, takeAll, tryAfter, twoClients, twoHolders } from "./directed.js";
import { contention, runIdOf, serverOf, strikeOver } from "./striking.js";

/** A key of ours that shows what a restart has kept. It is no lock's, and it has no end. */
const MARK = "probe:mark";

/**
 * Takes the server down and up by `how`, and writes down what it remembers.
 *
 * @param isKept  whether the mark has to be there afterwards, for it to be the fault that was meant
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

/** J23: SHUTDOWN as configured, and a start on the same files. */
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

/** J24: SIGKILL, and a start on the same files. */
export const killedServer: Injection = {
  row: "J24",
  work: contention,
  strike: (stage) => restartBy(stage, "J24", killAndRestart, true),
};

/** A restart with nothing in memory, put on record as J25. */
export function emptyRestart(stage: Stage): Promise<void> {
  return restartBy(stage, "J25", killAndRestart, false);
}

/** J25: a restart with nothing in memory, while somebody holds. */
export const forgetfulRestart: Injection = {
  row: "J25",
  strike: (stage) => twoHolders(stage, () => emptyRestart(stage)),
};

/** J25q: the same, but the server stays out until every lease is over. */
export const quietRestart: Injection = {
  row: "J25q",
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

/** J26: a restart on a file that was saved before the lock was taken. */
export const staleRestart: Injection = {
  row: "J26",
  async strike(stage) {
    const server = serverOf(stage);
    const file = join(server.directory, "dump.rdb");
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

/** A sync that takes so long is not over when the power goes. */
const NEVER_MS = 60_000;

/** J27: the power goes, and what was not synced with it. */
export const powerLoss: Injection = {
  row: "J27",
  needsSyncShim: true,
  work: (stage) => ({ ...contention(stage), sessions: stage.cell.expectation === "broken" ? 0 : 2 }),
  strike: (stage) => (stage.cell.expectation === "broken" ? lossOfUnsynced(stage) : lossAtWork(stage)),
};

/** So long that a kill meets the server between a write and its sync; it answers nobody meanwhile. */
const SLOW_MS = 300;

/** Everything that was answered was synced, and what was not answered may be gone. */
async function lossAtWork(stage: Stage): Promise<void> {
  const server = serverOf(stage);
  const before = await runIdOf(server);
  await server.command("SET", MARK, before);
  server.slowSyncs(SLOW_MS);
  // At least this one is lost, with whatever else came in with it or waits behind it.
  const unanswered = server.command("SET", "probe:unanswered", before).catch(() => {});
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

/** Somebody was told that it holds, and the file does not know. */
async function lossOfUnsynced(stage: Stage): Promise<void> {
  const server = serverOf(stage);
  const lockName = stage.newName();
  const leaseMs = 10 * stage.leaseMs;
  const [first, second] = twoClients(stage);
  await server.command("SET", MARK, "1");
  server.slowSyncs(NEVER_MS);
  const held = await takeAll(stage, first, lockName, leaseMs);
  const beganMs = stage.nowMs();
  const { keptBytes, cutBytes } = await server.powerLoss();
  server.slowSyncs(0);
  await server.restart();
  strikeOver(stage, "J27", server.name, beganMs, cutBytes > 0 ? `file cut by ${cutBytes} bytes to ${keptBytes}` : null);
  await letGo(held, await tryAfter(stage, second, lockName, leaseMs));
}
