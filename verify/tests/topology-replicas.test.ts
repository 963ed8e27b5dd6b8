import { expect, test } from "vitest";

import type { ReplicaControls, ServerHandle, Topology } from "../src/faults/stage.js";
import { startCluster } from "../src/faults/topology/cluster.js";
import { startSentinel } from "../src/faults/topology/sentinel.js";
import { slotOf } from "../src/faults/topology/slots.js";

/** A timeout for servers that never agree; it does not measure speed. */
const ENOUGH_MS = 60_000;

function controlsOf({ replicas }: Topology): ReplicaControls {
  if (replicas === undefined) throw new Error("the topology has no replicas");
  return replicas;
}

async function roleOf(server: ServerHandle): Promise<string> {
  return String(await server.command("ROLE")).split(",")[0] ?? "";
}

/** A server takes over from a dead master; two masters serve unaware of each other; then there is one again. */
async function changesMasters(topology: Topology): Promise<void> {
  const controls = controlsOf(topology);
  const first = await controls.master();
  await first.kill();
  const second = await controls.handOver();
  expect(second.name).not.toBe(first.name);
  await controls.rejoin(first);
  expect(await roleOf(first)).toBe("slave");
  expect((await controls.replicas()).map(({ name }) => name)).toContain(first.name);

  const next = await controls.split();
  expect([await roleOf(second), await roleOf(next)]).toEqual(["master", "master"]);
  await controls.heal();
  const masters = (await controls.masters()).map(({ name }) => name);
  expect(masters.includes(second.name) && masters.includes(next.name)).toBe(false);
}

test(
  "behind sentinels masters change, split and come together again",
  async () => {
    const topology = await startSentinel({ durability: "1n", hasTwoSides: true });
    try {
      await changesMasters(topology);
    } finally {
      await topology.stop();
    }
  },
  ENOUGH_MS,
);

test(
  "in a cluster masters change, split and come together again, and a slot moves with its keys",
  async () => {
    const topology = await startCluster({ durability: "1n", hasTwoSides: true });
    try {
      const controls = controlsOf(topology);
      const first = await controls.master();
      const key = "hf:mutex:{b}";
      expect(controls.isOnFirst("b")).toBe(true);
      expect(Number(await first.command("CLUSTER", "KEYSLOT", key))).toBe(slotOf("b"));
      await first.command("SET", key, "1");
      let steps = 0;
      const moved = await controls.moveSlot?.("b", async () => {
        steps += 1;
      });
      expect([moved, steps]).toEqual([1, 2]);
      await expect(first.command("GET", key)).rejects.toThrow("MOVED");
      await changesMasters(topology);
    } finally {
      await topology.stop();
    }
  },
  ENOUGH_MS,
);
