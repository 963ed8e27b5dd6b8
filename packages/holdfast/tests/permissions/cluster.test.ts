/** Like single.test.ts, but in a cluster, where the user needs more permissions. */
import { once } from "node:events";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { createHoldfast, type Holdfast } from "../../src/holdfast.js";
import { echoOn } from "../../src/inbox/echo.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import {
  CLIENTS_IN_A_CLUSTER,
  hasShardedChannels,
  IN_A_CLUSTER,
  isNamed,
  ON_ONE_SERVER,
  others,
  permit,
  permitConnecting,
  type Rules,
  refusals,
  refusedIn,
  SHARDED_CHANNELS,
} from "./acl.js";
import { type Complaint, shown, tour } from "./tour.js";

const RULES = [...ON_ONE_SERVER, ...IN_A_CLUSTER, ...CLIENTS_IN_A_CLUSTER];

vi.setConfig({ testTimeout: 150_000 });

let cluster: RedisCluster;
let isSharded: boolean;
let admin: Cluster;
const warnings: string[] = [];
const collect = (warning: Error & { detail?: string }): void =>
  void warnings.push(`${warning.message} ${warning.detail}`);

beforeAll(async () => {
  process.on("warning", collect);
  // No node fails in these tests. A busy machine that stalls must not trigger a failover.
  cluster = await startCluster({ nodeTimeoutMs: 15_000 });
  isSharded = await hasShardedChannels(cluster.nodes[0] as (typeof cluster.nodes)[number]);
  admin = new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
  admin.on("error", () => {});
}, 150_000);
afterAll(async () => {
  process.off("warning", collect);
  admin?.disconnect();
  await cluster?.stop();
});

type Connect = (username: string) => Promise<{ readonly redis: object; readonly close: () => unknown }>;

const libraries: Readonly<Record<string, Connect>> = {
  async ioredis(username) {
    const redisOptions = { username, password: "secret" };
    const redis = new Cluster(
      cluster.ports.map((port) => ({ host: "127.0.0.1", port })),
      { redisOptions, clusterRetryStrategy: () => 50 },
    );
    redis.on("error", () => {});
    return { redis, close: () => redis.disconnect() };
  },
  async "node-redis"(username) {
    const redis = createCluster({
      rootNodes: cluster.ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })),
      defaults: { username, password: "secret" },
    });
    redis.on("error", () => {});
    await redis.connect();
    return { redis, close: () => redis.destroy() };
  },
};

let users = 0;

/** @param afterwards  runs after the tour, while the Holdfasts are open */
async function tourAs(
  rules: Rules,
  connect: Connect,
  afterwards: (holdfasts: { first: Holdfast; second: Holdfast }) => Promise<unknown> = async () => {},
): Promise<Complaint[]> {
  users += 1;
  const username = `user${users}`;
  await Promise.all(cluster.nodes.map((node) => permit(node, username, rules)));
  await Promise.all(cluster.nodes.map((node) => permitConnecting(node, username)));
  const [one, two] = await Promise.all([connect(username), connect(username)]);
  const holdfasts = {
    first: createHoldfast({ redis: one.redis }),
    second: createHoldfast({ redis: two.redis }),
  };
  try {
    const complaints = await tour({ ...holdfasts, forget: (key) => admin.del(key) });
    await afterwards(holdfasts);
    return complaints;
  } finally {
    await Promise.all(Object.values(holdfasts).map((holdfast) => holdfast.close()));
    one.close();
    two.close();
  }
}

test.each(Object.keys(libraries))("with all documented permissions, nothing is refused: %s", async (library) => {
  for (const node of cluster.nodes) await node.command("ACL", "LOG", "RESET");
  expect(shown(refusals(await tourAs(RULES, libraries[library] as Connect)))).toEqual([]);
  const logs = await Promise.all(cluster.nodes.map((node) => node.command("ACL", "LOG")));
  expect(logs.flatMap(refusedIn)).toEqual([]);
  expect(warnings.filter((text) => text.includes("lacks"))).toEqual([]);
});

test.concurrent.each(IN_A_CLUSTER)(
  "without %s, a request is refused and the missing permission is named",
  async (permission) => {
    if (!isSharded && SHARDED_CHANNELS.includes(permission)) {
      // There is no such command, so nothing can be refused. The tests above show that nothing is.
      const [node] = cluster.nodes;
      await expect(node?.command("ACL", "SETUSER", "unknown", permission)).rejects.toThrow(/Unknown command/);
      return;
    }
    const rules = RULES.filter((rule) => rule !== permission);
    const isWarned = (): boolean => warnings.some((text) => text.includes(`lacks ${permission}`));
    const complaints = await tourAs(rules, libraries.ioredis as Connect, async ({ first, second }) => {
      // A waiter checks periodically whether messages reach it, and notices that it cannot count subscribers.
      if (permission === "+pubsub|shardnumsub") await until(() => waited(first, second).then(isWarned), "a warning");
    });
    expect(shown(others(complaints, permission))).toEqual([]);
    if (complaints.some(({ missing }) => isNamed(permission, missing))) return;
    if (permission === "+cluster|myid") {
      // Nothing is refused. Holdfast works without the failover grace and warns the operator.
      await until(
        () => warnings.some((text) => text.includes("took over") && text.includes("CLUSTER MYID")),
        "a warning",
      );
      return;
    }
    // A user that may not subscribe polls instead, and the operator gets a warning.
    await until(isWarned, `a warning about ${permission}`);
  },
);

/** The second Holdfast waits for a lock that the first one holds, long enough for several re-checks. */
async function waited(first: Holdfast, second: Holdfast): Promise<void> {
  const held = await first.mutex("held").acquire();
  const signal = AbortSignal.timeout(LONG_MS);
  await second
    .mutex("held")
    .acquire({ waitMs: Infinity, signal })
    .catch(() => {});
  await held.release();
}

test("ioredis itself reports that it may not run CLUSTER SLOTS", async () => {
  const rules = RULES.filter((rule) => rule !== "+cluster|slots");
  await Promise.all(cluster.nodes.map((node) => permit(node, "lost", rules)));
  const redis = new Cluster(
    cluster.ports.map((port) => ({ host: "127.0.0.1", port })),
    { redisOptions: { username: "lost", password: "secret" }, clusterRetryStrategy: () => null },
  );
  const [error] = await once(redis, "error");
  expect(String(error.lastNodeError)).toMatch(/'cluster\|slots'|'cluster' command or its subcommand/);
  redis.disconnect();
});

test.each(Object.keys(libraries))(
  "a client with all permissions can check each of its inboxes: %s",
  async (library) => {
    await Promise.all(cluster.nodes.map((node) => permit(node, "echo", RULES)));
    await Promise.all(cluster.nodes.map((node) => permitConnecting(node, "echo")));
    const { redis, close } = await (libraries[library] as Connect)("echo");
    const store = storeFor(redis);
    try {
      const heard: string[] = [];
      const shard = { channel: "hf:in:{a}:abcdefghijklmnop", isCounted: true };
      const own = { channel: "hf:in:abcdefghijklmnop", isCounted: false };
      // A server without sharded channels cannot count who is subscribed.
      expect(await echoOn(store, true).send({ ...shard, number: 1 }, LONG_MS)).toBe(!isSharded);
      await store.shardInbox?.(shard.channel, (message) => heard.push(`shard ${message}`), LONG_MS);
      await store.inbox(own.channel, (message) => heard.push(`own ${message}`), LONG_MS);
      expect(await echoOn(store, true).send({ ...shard, number: 2 }, LONG_MS)).toBe(true);
      expect(await echoOn(store, true).send({ ...own, number: 3 }, LONG_MS)).toBe(true);
      await until(() => heard.length === 2, "both echoes");
      expect(heard.toSorted()).toEqual(["own =3", "shard =2"]);
    } finally {
      await store.close();
      await close();
    }
  },
);
