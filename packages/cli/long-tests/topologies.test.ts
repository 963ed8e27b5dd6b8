/** Tests `run` on Sentinel, a cluster and several independent servers. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startCluster } from "../../../tests/support/redis-cluster.js";
import { startSentinel } from "../../../tests/support/redis-sentinel.js";
import { startRedis } from "../../../tests/support/redis-server.js";
import { holdfast, newFolder, start } from "../tests/support/command.js";

const servers: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

function urlsOf(ports: readonly number[]): string {
  return ports.map((port) => `redis://127.0.0.1:${port}`).join(" ");
}

describe("run", () => {
  it("continues to wait across a Sentinel failover, and gets the lock after the quiet time", async () => {
    const topology = await startSentinel();
    servers.push(topology);
    const env = {
      HOLDFAST_REDIS: urlsOf(topology.addresses.map(({ port }) => port)),
      HOLDFAST_SENTINEL: topology.name,
    };
    const end = join(await newFolder(), "end");
    const work = `while [ ! -e ${end} ]; do sleep 0.05; done`;
    const holder = start(["run", "failover", "--lease", "4s", "--json", "-c", work], env);
    await holder.event("granted");
    const waiter = start(["run", "failover", "--lease", "4s", "--json", "--", "true"], env);
    await waiter.event("waiting");
    await topology.failover();
    await writeFile(end, "");
    const once = await holdfast(["run", "other", "-n", "--lease", "4s", "--json", "--", "true"], env);
    expect(once.events.at(-1)).toMatchObject({ outcome: "grace", code: 75, resumesAtMs: expect.any(Number) });
    expect(Number(once.events.at(-1)?.resumesAtMs)).toBeGreaterThan(Date.now() - 60_000);
    expect((await waiter.ended).code).toBe(0);
    expect([0, 123]).toContain((await holder.ended).code);
  });

  it("runs once per period on a cluster, on whichever master the name is", async () => {
    // A long timeout, so that no failover starts on a slow machine.
    const cluster = await startCluster({ nodeTimeoutMs: 15_000 });
    servers.push(cluster);
    const env = { HOLDFAST_REDIS: urlsOf(cluster.ports), HOLDFAST_CLUSTER: "1" };
    for (const name of ["alpha", "beta", "gamma", "delta"]) {
      const words = ["run", name, "-n", "--once-per", "1h", "--", "true"];
      expect((await holdfast(words, env)).code).toBe(0);
      expect((await holdfast(words, env)).code).toBe(75);
    }
  });

  it("runs on three independent servers of which one is down, but exits with 69 if only one is up", async () => {
    const three = await Promise.all([startRedis(), startRedis(), startRedis()]);
    servers.push(...three);
    // Servers that run for less time than their longest lease may have forgotten what they granted.
    const env = { HOLDFAST_REDIS: urlsOf(three.map(({ port }) => port)), HOLDFAST_REDLOCK: "1" };
    expect(
      (await holdfast(["run", "quorum", "--lease", "3s", "-w", "60s", "-c", "test $HOLDFAST_KIND = redlock"], env))
        .code,
    ).toBe(0);
    await three[0]?.kill();
    expect((await holdfast(["run", "quorum", "--lease", "3s", "-w", "60s", "--", "true"], env)).code).toBe(0);
    await three[1]?.kill();
    const alone = await holdfast(["run", "quorum", "-n", "--connect-timeout", "1s", "--", "true"], env);
    expect([alone.code, alone.stderr]).toEqual([69, expect.stringContaining("only 1 of 3 servers")]);
  });
});
