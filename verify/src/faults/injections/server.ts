/** J18 to J22: a server that freezes, is slow, pauses, loses its scripts, or replies with errors. */

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Injection } from "../injection.js";
import type { ServerHandle, Stage } from "../stage.js";
import {
  contention,
  errorCount,
  happens,
  isOfALock,
  PROBE,
  pauseMs,
  serverOf,
  strikeOver,
  untilGivenUp,
} from "./striking.js";

/** J18: the server's process is frozen; the kernel still accepts connections for it. */
export const frozenServer: Injection = {
  row: "J18",
  work: contention,
  async strike(stage) {
    const server = serverOf(stage);
    const forMs = pauseMs(stage);
    const beganMs = stage.nowMs();
    server.freeze();
    const ping = server.command("PING");
    try {
      await stage.sleep(forMs);
    } finally {
      server.resume();
    }
    await ping;
    const gapMs = stage.nowMs() - beganMs;
    strikeOver(
      stage,
      "J18",
      server.name,
      beganMs,
      gapMs >= forMs ? `no answer to PING for ${gapMs.toFixed(0)} ms` : null,
    );
  },
};

const LOOP = "local n = 0 while true do n = n + 1 end";

/** J19: the server sleeps in one command, or is busy with a script. */
export const slowServer: Injection = {
  row: "J19",
  work: contention,
  async strike(stage) {
    const server = serverOf(stage);
    const forMs = stage.random.between(0.2, 2) * stage.leaseMs;
    const beganMs = stage.nowMs();
    if (stage.random.chance(0.5)) {
      await server.command("DEBUG", "SLEEP", (forMs / 1_000).toFixed(3));
      const tookMs = stage.nowMs() - beganMs;
      strikeOver(
        stage,
        "J19",
        server.name,
        beganMs,
        tookMs >= forMs ? `one command took ${tookMs.toFixed(0)} ms` : null,
      );
      return;
    }
    const before = await errorCount(server, "BUSY");
    await server.command("CONFIG", "SET", "busy-reply-threshold", Math.round(forMs / 3));
    const script = server.command("EVAL", LOOP, 0).catch((error: unknown) => String(error));
    await stage.sleep(forMs);
    await server.command("SCRIPT", "KILL").catch(() => {});
    await script;
    await server.command("CONFIG", "SET", "busy-reply-threshold", 5_000);
    const busy = (await errorCount(server, "BUSY")) - before;
    const tookMs = (stage.nowMs() - beganMs).toFixed(0);
    strikeOver(
      stage,
      "J19",
      server.name,
      beganMs,
      busy > 0 ? `a script ran for ${tookMs} ms, ${busy} told BUSY` : null,
    );
  },
};

/** J20: CLIENT PAUSE of writes or of everything, for about a lease; expiry waits too. */
export const pausedClients: Injection = {
  row: "J20",
  work: contention,
  async strike(stage) {
    const server = serverOf(stage);
    const mode = stage.random.pick(["WRITE", "ALL"] as const);
    const forMs = Math.round(stage.random.between(0.5, 1.5) * stage.leaseMs);
    const beganMs = stage.nowMs();
    await server.command("CLIENT", "PAUSE", forMs, mode);
    await server.command("SET", `${PROBE}pause`, "1", "PX", 1_000);
    const waitedMs = stage.nowMs() - beganMs;
    // The server measures a pause in whole ms.
    const proof = waitedMs >= forMs - 2 ? `a write waited ${waitedMs.toFixed(0)} ms (${mode})` : null;
    strikeOver(stage, "J20", server.name, beganMs, proof);
  },
};

/** On a busy host, it can happen that no client sends a request within three leases, so that no script is missed. */
const MOST_LEASES_OF_FLUSHES = 20;

/** J21: the script cache is emptied repeatedly, also while scripts are being loaded, until one was missed. */
export const flushedScripts: Injection = {
  row: "J21",
  work: contention,
  async strike(stage) {
    const server = serverOf(stage);
    const beganMs = stage.nowMs();
    const before = await errorCount(server, "NOSCRIPT");
    const missed = async (): Promise<number> => (await errorCount(server, "NOSCRIPT")) - before;
    const flushUntil = async (endMs: number): Promise<void> => {
      while (stage.nowMs() < endMs) {
        await server.command("SCRIPT", "FLUSH", stage.random.pick(["SYNC", "ASYNC"] as const));
        await stage.sleep(stage.random.between(1, 50));
      }
    };
    for (let leases = 3; leases <= MOST_LEASES_OF_FLUSHES; leases += 1) {
      await flushUntil(beganMs + leases * stage.leaseMs);
      if ((await missed()) > 0) break;
    }
    const count = await missed();
    strikeOver(stage, "J21", server.name, beganMs, count > 0 ? `NOSCRIPT answered ${count} times` : null);
  },
};

const FORGED = [
  "READONLY You can't write against a read only replica.",
  "LOADING Redis is loading the dataset in memory",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
  "CLUSTERDOWN The cluster is down",
  "TRYAGAIN Multiple keys request during rehashing of slot",
  "BUSY Redis is busy running a script.",
  "ERR something that nobody has heard of",
];

/** J22: the server replies with errors, real and forged, to scripts that it does not run. */
export const errorReplies: Injection = {
  row: "J22",
  work: contention,
  async strike(stage) {
    const drawn = stage.random.pick(["forged", "forged", "OOM", "MISCONF", "READONLY", "LOADING"] as const);
    // A cluster node gets its master in another way, and would not recover by itself.
    const how = stage.cell.column === "C" && drawn === "READONLY" ? "forged" : drawn;
    const beganMs = stage.nowMs();
    const server = serverOf(stage);
    if (how === "forged") {
      strikeOver(stage, "J22", "line", beganMs, await forged(stage));
      return;
    }
    const before = await errorCount(server, how);
    await REAL[how](server, stage);
    const count = (await errorCount(server, how)) - before;
    strikeOver(stage, "J22", server.name, beganMs, count > 0 ? `${how} answered ${count} times` : null);
  },
};

async function forged(stage: Stage): Promise<string | null> {
  const { proxy } = stage.topology;
  const before = proxy.counts.errorsAnswered ?? 0;
  const text = stage.random.pick(FORGED);
  for (let count = stage.random.whole(1, 8); count > 0; count -= 1) {
    const once = untilGivenUp(isOfALock);
    await happens(stage, proxy.answerError(once.matches, text), 2 * stage.leaseMs);
    once.giveUp();
  }
  const answered = (proxy.counts.errorsAnswered ?? 0) - before;
  return answered > 0 ? `${text.split(" ")[0]} made up ${answered} times` : null;
}

type Real = (server: ServerHandle, stage: Stage) => Promise<void>;

/** Errors that can really be caused, with the way back. */
const REAL: Readonly<Record<"OOM" | "MISCONF" | "READONLY" | "LOADING", Real>> = {
  async OOM(server, stage) {
    await server.command("CONFIG", "SET", "maxmemory", 1, "maxmemory-policy", "noeviction");
    await stage.sleep(stage.random.between(0.3, 1.5) * stage.leaseMs);
    await server.command("CONFIG", "SET", "maxmemory", 0);
  },
  async MISCONF(server, stage) {
    // A folder in place of the file makes saving fail, whichever user runs the server.
    const inTheWay = join(server.directory, "dump.rdb");
    // A server that was restarted with its data has created the file.
    await rm(inTheWay, { recursive: true, force: true });
    await mkdir(inTheWay);
    await server.command("CONFIG", "SET", "save", "86400 1000000");
    await server.command("BGSAVE");
    await stage.sleep(stage.random.between(0.5, 1.5) * stage.leaseMs);
    await rm(inTheWay, { recursive: true, force: true });
    await server.command("CONFIG", "SET", "save", "");
  },
  async READONLY(server, stage) {
    // A master at an address on which no server listens.
    await server.command("REPLICAOF", "127.0.0.1", 1);
    await stage.sleep(stage.random.between(0.2, 0.8) * stage.leaseMs);
    await server.command("REPLICAOF", "NO", "ONE");
  },
  async LOADING(server, stage) {
    // Data that loads slowly; the server handles clients after each piece.
    for (let count = 0; count < 30; count += 1) {
      await server.command("SET", `${PROBE}load:${count}`, "x".repeat(4_096), "PX", 10_000);
    }
    const delayUs = Math.round((stage.random.between(0.3, 1.2) * stage.leaseMs * 1_000) / 30);
    await server.command("CONFIG", "SET", "key-load-delay", delayUs, "loading-process-events-interval-bytes", 1_024);
    await server.command("DEBUG", "RELOAD");
    await server.command("CONFIG", "SET", "key-load-delay", 0);
  },
};
