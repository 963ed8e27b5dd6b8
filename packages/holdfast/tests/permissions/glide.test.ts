/** The users of docs/permissions.md with GLIDE, which sends its own commands, on one server and in a cluster. */
import { GlideClient, GlideClusterClient, Logger } from "@valkey/valkey-glide";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/holdfast.js";
import {
  CLIENTS_IN_A_CLUSTER,
  IN_A_CLUSTER,
  ON_ONE_SERVER,
  permit,
  permitConnecting,
  type Rules,
  refusals,
  refusedIn,
} from "./acl.js";
import { shown, tour } from "./tour.js";

Logger.setLoggerConfig("off");
vi.setConfig({ testTimeout: 150_000 });

interface Servers {
  /** All nodes. */
  readonly nodes: readonly { command(...words: (string | number)[]): Promise<unknown> }[];
  readonly rules: Rules;
  connect(): Promise<GlideClient | GlideClusterClient>;
}

const credentials = { username: "locks", password: "secret" };
let server: RedisServer;
let cluster: RedisCluster;

beforeAll(async () => {
  // No node fails in these tests. A busy machine that stalls must not trigger a failover.
  [server, cluster] = await Promise.all([startRedis(), startCluster({ nodeTimeoutMs: 15_000 })]);
}, 150_000);
afterAll(async () => {
  await Promise.all([server?.stop(), cluster?.stop()]);
});

const hosts = (ports: readonly number[]): { host: string; port: number }[] =>
  ports.map((port) => ({ host: "127.0.0.1", port }));

const topologies: Readonly<Record<string, () => Servers>> = {
  "one server": () => ({
    nodes: [server],
    rules: ON_ONE_SERVER,
    connect: () => GlideClient.createClient({ addresses: hosts([server.port]), credentials, requestTimeout: 5_000 }),
  }),
  "a cluster": () => ({
    nodes: cluster.nodes,
    rules: [...ON_ONE_SERVER, ...IN_A_CLUSTER, ...CLIENTS_IN_A_CLUSTER],
    connect: () =>
      GlideClusterClient.createClient({ addresses: hosts(cluster.ports), credentials, requestTimeout: 5_000 }),
  }),
};

test.each(Object.keys(topologies))("with the documented permissions, nothing is refused on %s", async (topology) => {
  const { nodes, rules, connect } = (topologies[topology] as () => Servers)();
  for (const node of nodes) {
    await permit(node, "locks", rules);
    await permitConnecting(node, "locks");
    await node.command("ACL", "LOG", "RESET");
  }
  const [one, two, admin] = await Promise.all([connect(), connect(), connect()]);
  const first = createHoldfast({ redis: one, subscriber: connect });
  const second = createHoldfast({ redis: two, subscriber: connect });
  try {
    const complaints = await tour({ first, second, forget: (key) => admin.del([key]) });
    const logs = await Promise.all(nodes.map((node) => node.command("ACL", "LOG")));
    expect(logs.flatMap(refusedIn)).toEqual([]);
    expect(shown(refusals(complaints))).toEqual([]);
  } finally {
    await Promise.all([first.close(), second.close()]);
    for (const client of [one, two, admin]) client.close();
  }
});
