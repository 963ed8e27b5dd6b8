import { readdir, stat } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { type OwnServer, type ServerOptions, startServer } from "../src/faults/topology/server.js";

const servers: OwnServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop())));

async function start(options: ServerOptions): Promise<OwnServer> {
  const server = await startServer(options);
  servers.push(server);
  return server;
}

async function runId(server: OwnServer): Promise<string> {
  return /run_id:(\w+)/.exec(String(await server.command("INFO", "server")))?.[1] ?? "";
}

/** The server's wall clock in ms. */
async function clock(server: OwnServer): Promise<number> {
  const [seconds, microseconds] = (await server.command("TIME")) as string[];
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
}

describe("a server without a file", () => {
  it("forgets everything when it is killed, and returns with a new run id", async () => {
    const server = await start({ durability: "1n" });
    await server.command("SET", "a", "1");
    const before = await runId(server);
    await server.kill();
    await server.restart();
    expect(await server.command("GET", "a")).toBe(null);
    expect(await runId(server)).not.toBe(before);
  });
});

describe("a server that syncs every write", () => {
  it("keeps acknowledged writes across a kill, a shutdown and a power loss", async () => {
    const server = await start({ durability: "1a", hasSyncShim: true });
    await server.command("SET", "killed", "1");
    await server.kill();
    await server.restart();
    await server.command("SET", "shut", "1");
    await server.shutdown();
    await server.restart();
    await server.command("SET", "lost", "1");
    // A write without a reply may be lost: its sync has not finished when the power fails.
    server.slowSyncs(60_000);
    const before = await writtenBytes(server);
    const unanswered = server.command("SET", "unanswered", "1").catch(() => "cut");
    // The server cannot report whether the write is in the file.
    await expect.poll(() => writtenBytes(server), { interval: 5, timeout: 15_000 }).toBeGreaterThan(before);
    const { keptBytes, cutBytes } = await server.powerLoss();
    expect(keptBytes).toBeGreaterThan(0);
    expect(cutBytes).toBeGreaterThan(0);
    expect(await unanswered).toBe("cut");
    server.slowSyncs(0);
    await server.restart();
    expect(await server.command("MGET", "killed", "shut", "lost", "unanswered")).toEqual(["1", "1", "1", null]);
  });

  /** The length of the file that the server appends to. */
  async function writtenBytes(server: OwnServer): Promise<number> {
    const folder = `${server.directory}/appendonlydir`;
    const part = (await readdir(folder)).find((name) => name.endsWith(".incr.aof"));
    return (await stat(`${folder}/${part}`)).size;
  }
});

describe("a server that syncs every second", () => {
  it("keeps acknowledged writes across a kill, and loses them in a power loss", async () => {
    const server = await start({ durability: "1e", hasSyncShim: true });
    await server.command("SET", "a", "1");
    await server.kill();
    await server.restart();
    expect(await server.command("GET", "a")).toBe("1");
    server.slowSyncs(60_000);
    await server.command("SET", "b", "1");
    expect((await server.powerLoss()).cutBytes).toBeGreaterThan(0);
    server.slowSyncs(0);
    await server.restart();
    expect(await server.command("GET", "b")).toBe(null);
  });
});

describe("a server whose clock is changed", () => {
  it("steps forward and back, and stops, next to a clock that runs", async () => {
    const server = await start({ durability: "1n", hasClockShim: true });
    expect(Math.abs((await clock(server)) - Date.now())).toBeLessThan(1_000);
    server.stepClock(120_000);
    expect((await clock(server)) - Date.now()).toBeGreaterThan(119_000);
    server.stepClock(-300_000);
    expect((await clock(server)) - Date.now()).toBeLessThan(-299_000);
    server.freezeClock();
    const frozen = await clock(server);
    await server.command("DEBUG", "SLEEP", "0.02");
    expect(await clock(server)).toBe(frozen);
    server.stepClock(0);
    expect(await clock(server)).not.toBe(frozen);
  });

  it("loses a key with a minute to live immediately when the clock steps past its expiry", async () => {
    const server = await start({ durability: "1n", hasClockShim: true });
    await server.command("SET", "a", "1", "PX", 60_000);
    server.stepClock(120_000);
    expect(await server.command("GET", "a")).toBe(null);
  });
});
