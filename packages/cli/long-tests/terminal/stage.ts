/** Provides a server, and locks on it that this process holds. */
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";

/** The server and the clients for one test file. */
export interface Stage {
  readonly redis: RedisServer;
  readonly holdfast: Holdfast;
}

/** Starts the stage before the first test of the file, and ends it after the last. */
export function newStage(): Stage {
  let stage: Stage & { readonly client: Redis };
  beforeAll(async () => {
    const redis = await startRedis();
    const client = new Redis(redis.url);
    stage = { redis, client, holdfast: createHoldfast({ redis: client, clientName: "tests" }) };
  });
  afterAll(async () => {
    await stage.holdfast.close();
    stage.client.disconnect();
    await stage.redis.stop();
  });
  return {
    get redis() {
      return stage.redis;
    },
    get holdfast() {
      return stage.holdfast;
    },
  };
}
