/** A worker process: carries out the orders of the measuring process with one contestant, until it is disconnected. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Adapter, Connection, Contestant } from "../adapters/adapter.js";
import { adapterNamed } from "../adapters/all.js";
import { programOf } from "../adapters/foreign.js";
import { crowd } from "./crowd.js";
import { ForeignWorker } from "./foreign.js";
import { openHop } from "./hop.js";
import { Holdings } from "./leases.js";
import type { Order } from "./orders.js";
import { pairsFor, timesFor } from "./pairs.js";
import { profiled } from "./profile.js";
import { traced } from "./traffic.js";

/** Given instead of the name of an adapter, it selects the ring that only publishes. */
const HOP = "publish";
const HELD_NAME = "held";

const [name = "", words = ""] = process.argv.slice(2);
// Only crew.ts writes this.
const connection = JSON.parse(words) as Connection;
const hop = name === HOP ? await openHop(connection) : undefined;
const adapter = hop === undefined ? adapterNamed(name) : undefined;
const foreign = adapter?.isForeign === true ? await startForeign(adapter) : undefined;
const contestant: Contestant | undefined =
  adapter === undefined || foreign !== undefined ? undefined : await open(adapter);
const holdings = contestant === undefined ? undefined : new Holdings(contestant);

process.on("message", (order: Order) => {
  obey(order).then(
    (result) => process.send?.({ result }),
    (error: unknown) =>
      process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.once("disconnect", () => process.exit(0));
process.send?.({ result: "ready" });

async function open(adapter: Adapter): Promise<Contestant> {
  const { quorumPorts, clusterPorts } = connection;
  if (clusterPorts !== undefined) {
    if (adapter.openCluster === undefined) throw new Error(`${name} is not measured in a cluster`);
    return adapter.openCluster(connection, clusterPorts);
  }
  if (quorumPorts === undefined) return adapter.open(connection);
  if (adapter.openQuorum === undefined) throw new Error(`${name} has no lock on several servers`);
  return adapter.openQuorum(connection, quorumPorts);
}

async function startForeign(peer: Adapter): Promise<ForeignWorker> {
  const found = programOf(peer);
  if ("missing" in found) throw new Error(found.missing);
  return ForeignWorker.start(found.program, connection);
}

async function obey(order: Order): Promise<unknown> {
  if (order.task === "profile") return profiled(() => obey(order.order));
  if (order.task === "trace") return traced(() => obey(order.order));
  if (order.task === "hop") return hop?.run(order);
  if (foreign !== undefined) return foreign.obey(order);
  if (contestant === undefined) throw new Error(`${name} holds no locks`);
  switch (order.task) {
    case "one-at-a-time":
      return timesFor(contestant, order.seconds);
    case "pairs":
      return pairsFor(contestant, order);
    case "crowd":
      return crowd(contestant, order);
    case "hold":
      return holdings?.hold(order);
    case "watch":
      return watch(order.seconds);
    case "keep":
      return keep(order.ports);
    case "wait":
      return waitFor(contestant, order.seconds);
  }
}

async function watch(seconds: number): Promise<{ processorUs: number }> {
  const before = process.cpuUsage();
  await sleep(seconds * 1_000);
  const { user, system } = process.cpuUsage(before);
  return { processorUs: user + system };
}

/** Acquires a name on each of several servers and keeps it. */
async function keep(ports: readonly number[]): Promise<null> {
  for (const port of ports) {
    const holder = await adapterNamed(name).open({ ...connection, port });
    await holder.acquire(HELD_NAME);
  }
  return null;
}

async function waitFor(waiter: Contestant, seconds: number): Promise<null> {
  const waited = waiter.acquire(HELD_NAME).then(() => true);
  const isGranted = await Promise.race([waited, sleep(seconds * 1_000, false)]);
  if (isGranted) throw new Error("exclusion was broken: a held lock was granted");
  return null;
}
