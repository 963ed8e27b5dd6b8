/** Tests the verbs on a cluster, where names are on any of its masters. */
import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { type Place, placeOf } from "./place.js";
import { testVerbs } from "./verbs.js";

let cluster: RedisCluster;
let place: Place;
beforeAll(async () => {
  // A long timeout, so that a slow node does not cause a failover.
  cluster = await startCluster({ nodeTimeoutMs: 15_000 });
  const client = new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
  place = placeOf({
    ports: cluster.ports.slice(0, 2),
    env: { HOLDFAST_CLUSTER: "1" },
    clients: [client],
    stop: () => cluster.stop(),
  });
});
afterAll(() => place?.close());

describe("on a cluster", () => {
  testVerbs({ place: () => place, ports: () => cluster.ports, called: "cluster" });
});
