/** Holdfast's mutex as users have it, with renewal, fencing token and queue, on each client. */
import type { Fairness, Holdfast } from "holdfast";
import type { Adapter, Client, Connection, Contestant } from "./adapter.js";
import { newGlide, newIoredis, newIoredisCluster, newIoredisOn, newNodeRedis } from "./client.js";

const COHORT = 'fairness "cohort" (its default), waitMs Infinity';

/** On ioredis. */
export const holdfast: Adapter = {
  ...adapter("holdfast", "ioredis", "cohort", `${COHORT}; on several servers redlock(name)`),
  openQuorum: connectQuorum,
  openCluster: connectCluster,
};

/** First come, first served across all processes. */
export const holdfastStrict: Adapter = adapter(
  "holdfast/strict",
  "ioredis",
  "strict",
  'fairness "strict", waitMs Infinity',
);

/** `run`, which does not wait for the release. `release` ends the work. */
export const holdfastBackground: Adapter = {
  ...adapter("holdfast/background", "ioredis", "cohort", 'run(work, { release: "background" })'),
  onlyFree: "its release matters only when nobody waits",
  async open(connection) {
    const { createHoldfast } = await import("holdfast");
    const redis = await newIoredis(connection);
    const locks = createHoldfast({ redis, waitMs: Infinity, leaseMs: connection.leaseMs });
    return {
      acquire: (name) =>
        new Promise((resolve, reject) => {
          const work = (): Promise<void> =>
            new Promise((end) => {
              const release = (): Promise<void> => {
                end();
                return running;
              };
              resolve({ release });
            });
          const running = locks.mutex(name).run(work, { release: "background", onReleaseError: fail });
          running.catch(reject);
        }),
      async close() {
        await locks.close();
        await redis.quit();
      },
    };
  },
};

/** Ends the process when a release failed, because the figures would be worthless. */
function fail(error: unknown): never {
  console.error(error);
  process.exit(1);
}

/** On node-redis. */
export const holdfastNodeRedis: Adapter = adapter("holdfast/node-redis", "node-redis", "cohort", COHORT);

/** On GLIDE, whose connections cannot be duplicated. It polls instead of subscribing, but no row has waiters on GLIDE. */
export const holdfastGlide: Adapter = adapter("holdfast/glide", "glide", "cohort", `${COHORT}, no subscriber`);

type OwnClient = Exclude<Client, "no client" | "its own client">;

function adapter(name: string, client: OwnClient, fairness: Fairness, settings: string): Adapter {
  const open = (connection: Connection): Promise<Contestant> => connect(connection, client, fairness);
  return { name, role: "own", package: "holdfast", client, settings, open };
}

async function connect(connection: Connection, client: OwnClient, fairness: Fairness): Promise<Contestant> {
  const { createHoldfast } = await import("holdfast");
  const [redis, end] = await connected(connection, client);
  const locks: Holdfast = createHoldfast({ redis, fairness, waitMs: Infinity, leaseMs: connection.leaseMs });
  return mutexes(locks, end);
}

async function connectCluster(connection: Connection, ports: readonly number[]): Promise<Contestant> {
  const { createHoldfast } = await import("holdfast");
  const redis = await newIoredisCluster(connection, ports);
  const locks: Holdfast = createHoldfast({ redis, waitMs: Infinity, leaseMs: connection.leaseMs });
  return mutexes(locks, () => redis.quit());
}

function mutexes(locks: Holdfast, end: () => Promise<unknown>): Contestant {
  return {
    acquire: (name) => locks.mutex(name).acquire(),
    async close() {
      await locks.close();
      await end();
    },
  };
}

async function connectQuorum(connection: Connection, ports: readonly number[]): Promise<Contestant> {
  const { createHoldfast } = await import("holdfast");
  const redlock = await newIoredisOn(connection, ports);
  const locks: Holdfast = createHoldfast({ redlock, waitMs: Infinity, leaseMs: connection.leaseMs });
  return {
    acquire: (name) => locks.redlock(name).acquire(),
    async close() {
      await locks.close();
      await Promise.all(redlock.map((redis) => redis.quit()));
    },
  };
}

async function connected(connection: Connection, client: OwnClient): Promise<[object, () => Promise<unknown>]> {
  switch (client) {
    case "ioredis": {
      const redis = await newIoredis(connection);
      return [redis, () => redis.quit()];
    }
    case "node-redis": {
      const redis = await newNodeRedis(connection);
      return [redis, () => redis.close()];
    }
    case "glide": {
      const redis = await newGlide(connection);
      return [redis, async () => redis.close()];
    }
  }
}
