/** A redis-server with a model of a Java service on one side and Node processes on the other. */

import { createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../../../tests/support/redis-server.js";
import { type RedissonOptions, redisson } from "../../../src/redisson/index.js";
import { JavaModel } from "./java-model.js";
import type { PermitPeer, TwoSides } from "./peer.js";

/** Result of `openSides`. */
export interface OpenSides extends TwoSides {
  readonly server: RedisServer;
  /** Like `process`, with custom options. */
  processWith(
    holdfast: Partial<HoldfastOptions>,
    options?: RedissonOptions,
  ): { readonly redisson: ReturnType<typeof redisson>; readonly holdfast: Holdfast };
  /** Ends the processes that were made since the last call. */
  end(): Promise<void>;
  stop(): Promise<void>;
}

/** @param makePeer  makes the other side; by default the model of a Java service */
export async function openSides(
  makePeer?: (server: RedisServer) => Promise<{ readonly peer: PermitPeer; stop(): Promise<unknown> }>,
  { rounds = 20, contendMs = 1_000, ...rest }: Partial<Pick<TwoSides, "rounds" | "contendMs" | "tell">> = {},
): Promise<OpenSides> {
  const server = await startRedis();
  const redis = new Redis({ port: server.port });
  const subscriber = new Redis({ port: server.port });
  const made: { readonly client: Redis; readonly holdfast: Holdfast }[] = [];
  const messages: string[] = [];
  subscriber.on("pmessage", (_pattern: string, channel: string, message: string) =>
    messages.push(`${channel} ${message}`),
  );
  await subscriber.psubscribe("redisson_*");
  const model = makePeer === undefined ? new JavaModel(redis) : undefined;
  const other = await makePeer?.(server);

  const processWith: OpenSides["processWith"] = (options, redissonOptions) => {
    const client = new Redis({ port: server.port });
    client.on("error", () => {});
    const holdfast = createHoldfast("store" in options ? options : { redis: client, ...options });
    made.push({ client, holdfast });
    return { holdfast, redisson: redisson(holdfast, redissonOptions) };
  };
  const end = async (): Promise<void> => {
    await Promise.all(
      made.splice(0).map(async ({ client, holdfast }) => {
        await holdfast.close();
        client.disconnect();
      }),
    );
  };
  return {
    server,
    redis,
    rounds,
    contendMs,
    ...rest,
    peer: (other?.peer ?? model) as PermitPeer,
    processWith,
    process: () => processWith({}),
    async heard() {
      // Replies arrive in order on one connection, so all earlier messages have arrived.
      await subscriber.ping();
      return messages.splice(0);
    },
    end,
    async stop() {
      await end();
      model?.close();
      await other?.stop();
      redis.disconnect();
      subscriber.disconnect();
      await server.stop();
    },
  };
}
