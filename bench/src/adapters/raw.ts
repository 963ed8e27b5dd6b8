/**
 * The minimum that any lock must do: `SET key value NX PX` to acquire and compare-and-delete to release. No token,
 * no queue, no renewal. Everything else is measured as a ratio to this on the same client.
 */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import type { Adapter, Connection, Contestant, Held } from "./adapter.js";
import { newGlide, newIoredis, newIoredisCluster, newNodeRedis } from "./client.js";

/** A usual polling interval: 10 ms on average, with jitter so that callers do not poll in step. */
const RETRY_MIN_MS = 5;
const RETRY_MAX_MS = 15;
const SETTINGS = "SET NX PX and compare-and-delete by EVALSHA; polls every 5 to 15 ms";
const ON_SEVERAL = "on several servers it sends each command to all at once and waits for all replies";

const COMPARE_AND_DELETE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const SHA1 = createHash("sha1").update(COMPARE_AND_DELETE).digest("hex");

/** The two commands in the API of one client library. */
interface Commands {
  /** Null if another caller holds the lock. */
  take(key: string, owner: string): Promise<unknown>;
  giveBack(key: string, owner: string): Promise<unknown>;
  close(): Promise<unknown>;
}

/** On ioredis. */
export const raw: Adapter = {
  name: "raw",
  role: "raw",
  client: "ioredis",
  settings: `${SETTINGS}; ${ON_SEVERAL}`,
  open: async (connection) => contestant(await onIoredis(connection)),
  async openQuorum(connection, ports) {
    return contestant(onAll(await Promise.all(ports.map((port) => onIoredis({ ...connection, port })))));
  },
  async openCluster(connection, ports) {
    const client = await newIoredisCluster(connection, ports);
    await Promise.all(client.nodes("master").map((master) => master.script("LOAD", COMPARE_AND_DELETE)));
    return contestant(commandsOf(client, connection));
  },
};

/** On node-redis. */
export const rawNodeRedis: Adapter = {
  name: "raw/node-redis",
  role: "raw",
  client: "node-redis",
  settings: SETTINGS,
  async open(connection) {
    const client = await newNodeRedis(connection);
    await client.scriptLoad(COMPARE_AND_DELETE);
    const expiration = { type: "PX", value: connection.leaseMs } as const;
    return contestant({
      take: (key, owner) => client.set(key, owner, { expiration, condition: "NX" }),
      giveBack: (key, owner) => client.evalSha(SHA1, { keys: [key], arguments: [owner] }),
      close: () => client.close(),
    });
  },
};

/** On GLIDE. */
export const rawGlide: Adapter = {
  name: "raw/glide",
  role: "raw",
  client: "glide",
  settings: SETTINGS,
  open: openGlide,
};

async function openGlide(connection: Connection): Promise<Contestant> {
  const { TimeUnit } = await import("@valkey/valkey-glide");
  const client = await newGlide(connection);
  await client.customCommand(["SCRIPT", "LOAD", COMPARE_AND_DELETE]);
  const expiry = { type: TimeUnit.Milliseconds, count: connection.leaseMs };
  return contestant({
    take: (key, owner) => client.set(key, owner, { expiry, conditionalSet: "onlyIfDoesNotExist" }),
    giveBack: (key, owner) => client.customCommand(["EVALSHA", SHA1, "1", key, owner]),
    close: async () => client.close(),
  });
}

async function onIoredis(connection: Connection): Promise<Commands> {
  const client = await newIoredis(connection);
  await client.script("LOAD", COMPARE_AND_DELETE);
  return commandsOf(client, connection);
}

function commandsOf(client: Redis | Cluster, { leaseMs }: Connection): Commands {
  return {
    take: (key, owner) => client.set(key, owner, "PX", leaseMs, "NX"),
    giveBack: (key, owner) => client.evalsha(SHA1, 1, key, owner),
    close: () => client.quit(),
  };
}

/** Acquired if a majority granted it. Grants by a minority are released, so that no caller waits for them to expire. */
function onAll(servers: readonly Commands[]): Commands {
  const giveBack = (key: string, owner: string): Promise<unknown> =>
    Promise.all(servers.map((server) => server.giveBack(key, owner)));
  return {
    async take(key, owner) {
      const answers = await Promise.all(servers.map((server) => server.take(key, owner)));
      if (answers.filter((answer) => answer !== null).length > servers.length / 2) return owner;
      await giveBack(key, owner);
      return null;
    },
    giveBack,
    close: () => Promise.all(servers.map((server) => server.close())),
  };
}

function contestant(commands: Commands): Contestant {
  const owners = randomBytes(12).toString("base64url");
  let last = 0;
  return {
    async acquire(name) {
      last += 1;
      const held = new RawHeld(commands, `raw:{${name}}`, `${owners}/${last}`);
      while (!(await held.take())) await sleep(RETRY_MIN_MS + Math.random() * (RETRY_MAX_MS - RETRY_MIN_MS));
      return held;
    },
    async close() {
      await commands.close();
    },
  };
}

class RawHeld implements Held {
  readonly #commands: Commands;
  readonly #key: string;
  readonly #owner: string;

  constructor(commands: Commands, key: string, owner: string) {
    this.#commands = commands;
    this.#key = key;
    this.#owner = owner;
  }

  async take(): Promise<boolean> {
    return (await this.#commands.take(this.#key, this.#owner)) !== null;
  }

  release(): Promise<unknown> {
    return this.#commands.giveBack(this.#key, this.#owner);
  }
}
