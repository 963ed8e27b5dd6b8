/** Failover grace in a cluster: masters that crash with unreplicated grants, and slots that move. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ClusterNode, type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { type Holdfast, StoreError } from "../../src/index.js";
import { clusterSlot, tagOf } from "../../src/stores/cluster-slot.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { outcomeOf } from "../faults/scene.js";
import { clusters, startWorkers, useClients } from "../faults/topology-scene.js";
import { sharesScripts } from "./shared-scripts.js";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
}, 150_000);
afterAll(() => cluster.stop());

const scene = useClients();
/** A failover takes four seconds of this, even on an idle machine. */
const LEASE_MS = 10_000;
/** Shorter than any quiet time, so a caller with this `waitMs` times out on a quiet server. */
const PATIENCE_MS = LEASE_MS * 0.7;
const auto = { failoverGrace: "auto" } as const;

function slotOf(name: string): number {
  return clusterSlot(`{${name}}`);
}

/** Returns another lock name on the same master. */
async function nameOn(master: ClusterNode, prefix: string): Promise<string> {
  for (let i = 0; ; i += 1) {
    const name = `${prefix}:${i}`;
    if ((await cluster.masterOf(slotOf(name))).id === master.id) return name;
  }
}

async function otherMaster(master: ClusterNode): Promise<ClusterNode> {
  const other = (await cluster.masters()).find(({ id }) => id !== master.id);
  if (other === undefined) throw new Error("there are three masters");
  return other;
}

/** The server run that the marker of the slot names. */
async function wholeFor(name: string): Promise<unknown> {
  const slot = slotOf(name);
  return (await cluster.masterOf(slot)).command("HGET", `hf:lineage:{${tagOf(slot)}}`, "run");
}

/** Cuts off the replicas of a master, so its writes are not replicated. Returns a function that undoes it. */
async function cutReplicasOf(master: ClusterNode): Promise<() => Promise<unknown>> {
  const replicas = await cluster.replicasOf(master);
  for (const replica of replicas) {
    await replica.command("CONFIG", "SET", "masteruser", "nobody");
    await replica.command("CONFIG", "SET", "masterauth", "nothing");
    await replica.command("CLIENT", "KILL", "TYPE", "master");
  }
  return async () => {
    for (const setting of ["masteruser", "masterauth"])
      await Promise.all(replicas.map((one) => one.command("CONFIG", "SET", setting, "")));
  };
}

/** The other clients are tested in the nightly run. */
const thorough = process.env.HOLDFAST_TESTS === "all" ? clusters : clusters.slice(0, 1);
/** Clients that find the new master before their leases expire. The cluster client of node-redis takes longer. */
const quick = clusters.filter(({ name }) => !name.startsWith("node-redis"));

describe("a slot that moves", () => {
  test.each(thorough)("causes no quiet time for known and new clients ($name)", async (library) => {
    const { name } = scene;
    const [known, stranger] = [
      await scene.client(library, cluster.ports, auto),
      await scene.client(library, cluster.ports, auto),
    ];
    const lease = await known.mutex(name).acquire({ leaseMs: LEASE_MS, waitMs: PATIENCE_MS });
    const home = await cluster.masterOf(slotOf(name));
    const before = await wholeFor(name);
    await cluster.moveSlot(slotOf(name), await otherMaster(home));
    await cluster.settled();
    expect(await wholeFor(name), "nobody has asked yet").toBe(before);
    expect(await lease.release()).toBe("released");
    const next = await stranger.mutex(name).acquire({ leaseMs: LEASE_MS, waitMs: PATIENCE_MS });
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await wholeFor(name), "for another run").not.toBe(before);
    expect(await next.release()).toBe("released");
    await cluster.moveSlot(slotOf(name), home);
    await cluster.settled();
    const last = await known.mutex(name).acquire({ leaseMs: LEASE_MS, waitMs: PATIENCE_MS });
    expect(await last.release()).toBe("released");
  });
});

const TURNS = 50;

/** Calls of each command per turn, without the occasional commands of cluster nodes and clients. */
async function commandsOfATurn(node: ClusterNode): Promise<Record<string, number>> {
  const info = String(await node.command("INFO", "commandstats"));
  const calls = [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(
    ([, name = "", count]) => [name, Math.floor(Number(count) / TURNS)] as const,
  );
  return Object.fromEntries(calls.filter(([, each]) => each > 0));
}

test.each(thorough)(
  "an acquire and its release send the same commands with and without grace ($name)",
  async (library) => {
    const { name } = scene;
    const costs: Record<string, number>[] = [];
    const master = await cluster.masterOf(slotOf(name));
    for (const failoverGrace of ["auto", "off"] as const) {
      const holdfast = await scene.client(library, cluster.ports, { failoverGrace });
      const announced = async (): Promise<number> => {
        const masters = await cluster.masters();
        const found = await Promise.all(masters.map((each) => each.command("KEYS", "hf:client:*")));
        return found.flat().length;
      };
      const before = await announced();
      // The first use checks the server, writes the client record and loads the scripts.
      await holdfast.mutex(name).run(() => until(async () => (await announced()) > before, "the client's record"));
      await master.command("CONFIG", "RESETSTAT");
      for (let i = 0; i < TURNS; i += 1) await holdfast.mutex(name).run(() => {});
      costs.push(await commandsOfATurn(master));
    }
    // If replicas also get the scripts, each script reads the run of the server with two INFO commands.
    expect(costs[0]).toEqual({ ...costs[1], ...((await sharesScripts(master)) && { info: 4 }) });
    expect(costs[0]?.evalsha).toBe(2);
  },
);

describe("a master that crashes with unreplicated grants", () => {
  test("leaves them with their holders, grants nothing for a whole lease, and keeps a moved slot quiet", async () => {
    const { name } = scene;
    const master = await cluster.masterOf(slotOf(name));
    const names = [name, await nameOn(master, `${name}:b`), await nameOn(master, `${name}:c`)];
    const moved = await nameOn(master, `${name}:moved`);
    const holders = await Promise.all(quick.map((library) => scene.client(library, cluster.ports, auto)));
    const rivals = await Promise.all(clusters.map((library) => scene.client(library, cluster.ports, auto)));
    // The first use reports the lease length, and the replica receives it.
    const warm = async (holdfast: Holdfast, of: string): Promise<void> =>
      holdfast.mutex(of).run(() => {}, { leaseMs: LEASE_MS, waitMs: LONG_MS });
    for (const holdfast of holders) for (const of of [...names, moved]) await warm(holdfast, of);
    const [replica] = await cluster.replicasOf(master);
    await until(async () => {
      const has = String(await replica?.command("INFO", "replication"));
      const [, its] = /slave_repl_offset:(\d+)/.exec(has) ?? [];
      const [, all] = /master_repl_offset:(\d+)/.exec(String(await master.command("INFO", "replication"))) ?? [];
      return its === all;
    }, "the replica to have all");

    const mend = await cutReplicasOf(master);
    const leases = await Promise.all(
      holders.map((holdfast, i) => holdfast.mutex(names[i] ?? name).acquire({ leaseMs: LEASE_MS })),
    );
    const stays = await holders[0]?.mutex(moved).acquire({ leaseMs: LEASE_MS, renew: false });
    const grantedAtMs = performance.now();
    await master.kill();
    await until(async () => (await cluster.masterOf(slotOf(name)).catch(() => master)).id !== master.id, "another");
    await mend();

    const waiting = rivals.map((holdfast, i) =>
      outcomeOf(holdfast.mutex(names[i] ?? name).acquire({ leaseMs: LEASE_MS, waitMs: 6 * LONG_MS })),
    );
    // Moves the slot to a server that is not quiet, before any request for it.
    const successor = await cluster.masterOf(slotOf(moved));
    await cluster.moveSlot(slotOf(moved), await otherMaster(successor));
    const early = await outcomeOf(
      rivals[0]?.mutex(moved).acquire({ leaseMs: LEASE_MS, waitMs: 500 }) ?? Promise.reject(new Error("none")),
    );
    if ((stays?.validForMs() ?? 0) > 0) expect(early.error).toBeInstanceOf(StoreError);

    await until(() => performance.now() - grantedAtMs > 1.5 * LEASE_MS, "more than a lease to pass");
    const lost = leases.flatMap((lease, i) =>
      lease.validForMs() > 0 ? [] : [`${quick[i]?.name}: ${String(lease.signal.reason)}`],
    );
    expect(lost, "all were put back").toEqual([]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => "released"));
    for (const [i, outcome] of (await Promise.all(waiting)).entries()) {
      expect(outcome.error).toBeUndefined();
      expect(outcome.value?.token).toBeGreaterThan(leases[i]?.token ?? 0);
      expect(await outcome.value?.release()).toBe("released");
    }
    const late = await rivals[0]?.mutex(moved).acquire({ leaseMs: LEASE_MS, waitMs: 4 * LONG_MS });
    expect(late?.token).toBeGreaterThan(stays?.token ?? Infinity);
    expect(stays?.validForMs()).toBe(0);
    expect(await late?.release()).toBe("released");
    await master.restart();
    await cluster.settled();
  }, 150_000);
});

describe("a slot that moves under load, in a cluster after a failover", () => {
  test.each(thorough)("causes no quiet time and loses no lock ($name)", async (library) => {
    const { name } = scene;
    const slot = slotOf(name);
    const holdfasts = [
      await scene.client(library, cluster.ports, auto),
      await scene.client(library, cluster.ports, auto),
    ];
    // The leases are longer than this test, so a quiet time would last until its end.
    const workers = startWorkers([...holdfasts, ...holdfasts], [name]);
    const home = await cluster.masterOf(slot);
    await until(async () => (await wholeFor(name)) !== null, "somebody to work");
    for (const to of [await otherMaster(home), home]) {
      const before = await wholeFor(name);
      await cluster.moveSlot(slot, to);
      await until(async () => (await wholeFor(name)) !== before, "somebody to work after the move");
    }
    const { errors, overlaps, tokens } = await workers.stop();
    expect(errors).toEqual([]);
    expect(overlaps).toBe(0);
    expect(tokens[name]).toEqual(tokens[name]?.toSorted((a, b) => a - b));
  });
});
