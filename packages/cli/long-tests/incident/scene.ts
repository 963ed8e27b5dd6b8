/**
 * Sets up the incident: servers, twenty services in separate processes, 5,000 locks, and everything that goes wrong in
 * one night.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const CLIENTS = 20;
const LOCKS = 5_000;
const HALF_AN_HOUR_MS = 1_800_000;
/** The length of the lease that is lost while Redis is away. */
const BRIEF_MS = 3_000;
/** The longest wait for an expected event. A client counts as gone one minute after its last update. */
const PATIENCE = { timeout: 300_000, interval: 250 };
/** The index of the client that loses its lease. */
const LOSING = 4;
const SERVICES = ["api", "billing", "search", "worker"];

/** What a command printed. */
export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A console on a separate port, in a separate process. */
export interface RunningConsole {
  readonly origin: string;
  /** The address including the token. */
  readonly address: string;
}

/** The running incident. */
export interface Incident {
  readonly redis: RedisServer;
  readonly redlock: readonly RedisServer[];
  /** Runs `holdfast` with these words, and waits for its end. */
  say(...words: readonly string[]): Promise<Said>;
  console(...flags: readonly string[]): Promise<RunningConsole>;
  /** Kills Redis, and resolves when a client has lost its lease because of that. */
  stopRedis(): Promise<void>;
  close(): Promise<void>;
}

/** Starts everything, and resolves when everything has gone wrong. */
export async function startIncident(): Promise<Incident> {
  const [redis, ...redlock] = await Promise.all([
    startRedis({ persist: true }),
    startRedis(),
    startRedis(),
    startRedis(),
  ]);
  const children = new Set<ChildProcess>();
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, HOLDFAST_REDIS: redis.url };
  const run = (words: readonly string[]): ChildProcess => {
    const child = spawn(process.execPath, [MAIN, ...words], { env, stdio: ["ignore", "pipe", "pipe"] });
    children.add(child);
    child.once("close", () => children.delete(child));
    return child;
  };
  const clients: Program[] = Array.from({ length: CLIENTS }, (_, i) =>
    startProgram(new URL("./client.mjs", import.meta.url), {
      ports: i === CLIENTS - 1 ? redlock.map(({ port }) => port) : [redis.port],
      host: `app-${1 + (i % 5)}`,
      pid: 4_201 + i,
      app: SERVICES[i % SERVICES.length],
    }),
  );
  // Listen from the start, because on a slow machine the lease may be lost early.
  const lost = clients[LOSING]?.heard("lost");
  const say = async (...words: readonly string[]): Promise<Said> => {
    const child = run(words);
    const said = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name]?.setEncoding("utf8").on("data", (text: string) => {
        said[name] += text;
      });
    const [code] = await once(child, "close");
    return { code, ...said };
  };
  const incident: Incident = {
    redis,
    redlock,
    say,
    async console(...flags) {
      const child = run(["console", "-p", "0", "--no-open", "--poll", "250ms", "--connect-timeout", "60s", ...flags]);
      let out = "";
      child.stdout?.setEncoding("utf8").on("data", (text: string) => {
        out += text;
      });
      await vi.waitUntil(() => out.includes("\n"), PATIENCE);
      const [address = "", origin = ""] = /^(http:\/\/[^/]+)\/#token=\S+/.exec(out) ?? [];
      return { origin, address };
    },
    async stopRedis() {
      await redis.kill();
      await lost;
    },
    async close() {
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(clients.map((client) => client.kill()));
      await Promise.all([redis, ...redlock].map((server) => server.stop()));
    },
  };
  try {
    await goWrong(clients, incident);
  } catch (error) {
    await incident.close();
    throw error;
  }
  return incident;
}

async function goWrong(clients: readonly Program[], { say, redlock }: Incident): Promise<void> {
  const [dying, one, other, next] = clients as [Program, Program, Program, Program];
  const [brief, quorum] = [clients[LOSING] as Program, clients[CLIENTS - 1] as Program];
  const ordinary = { leaseMs: HALF_AN_HOUR_MS };
  const holders = clients.slice(1, -1);
  const servers = ["--redlock", ...redlock.flatMap(({ url }) => ["-r", url])];
  const isOnAll = async (name: string): Promise<boolean> =>
    (await say("show", name, ...servers)).stdout.includes("held on 3 of 3 servers");
  // Servers that have just started grant nothing until the lease of the first request would have ended, and a lease does
  // not wait for all of them. It must be on all, because one of them is killed below.
  const holdOnAll = async (): Promise<void> => {
    let tries = 0;
    await vi.waitUntil(async () => {
      tries += 1;
      await quorum.call("hold", { names: [`first ${tries}`], leaseMs: BRIEF_MS });
      return await isOnAll(`first ${tries}`);
    }, PATIENCE);
    await quorum.call("hold", { names: ["ledger"], ...ordinary, label: "close of day" });
    await vi.waitUntil(() => isOnAll("ledger"), PATIENCE);
  };
  const orders = holders.map((client, i) => {
    const [from, to] = [i, i + 1].map((part) => Math.round((part * LOCKS) / holders.length)) as [number, number];
    const names = Array.from({ length: to - from }, (_, n) => `order:${String(from + n).padStart(5, "0")}`);
    return client.call("hold", { names, ...ordinary });
  });
  await Promise.all([...orders, holdOnAll()]);

  await dying.call("hold", { names: ["report:daily"], ...ordinary, label: "yesterday" });
  await one.call("wait", { name: "report:daily", ...ordinary, label: "invoices" });
  await next.call("wait", { name: "report:daily", ...ordinary, label: "statistics" });
  await dying.kill();

  await one.call("hold", { names: ["stock:7"], ...ordinary, label: "reserve" });
  await other.call("hold", { names: ["invoice:9"], ...ordinary, label: "charge" });
  await one.call("wait", { name: "invoice:9", ...ordinary, label: "reserve" });
  await other.call("wait", { name: "stock:7", ...ordinary, label: "charge" });
  await brief.call("hold", { names: ["sync:eu"], leaseMs: BRIEF_MS, label: "copy to the EU" });
  await next.call("pause", { name: "nightly", by: "on-call@ops-1", label: "db maintenance", forMs: 7_200_000 });
  await next.call("wait", { name: "nightly", ...ordinary, throughPause: true, label: "clean up" });
  await redlock[2]?.kill();
  await vi.waitUntil(async () => (await say("ls", "--gone")).stdout.includes("report:daily"), PATIENCE);
}
