/** Asks once whether there is a Redis at the other end, so that a missing one is one line and not a flood. */
import { Redis } from "ioredis";

const ANSWER_WITHIN_MS = 3_000;

/** Null if the server answers; otherwise one line that says what is wrong and what to do. Never rejects. */
export async function whyRedisIsUnusable(url: string): Promise<string | null> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: ANSWER_WITHIN_MS,
    commandTimeout: ANSWER_WITHIN_MS,
  });
  // The reason comes as this event; what `connect` rejects with only says that the connection is closed.
  let reason: string | undefined;
  redis.on("error", (error: Error) => {
    reason ??= error.message || String((error as NodeJS.ErrnoException).code);
  });
  try {
    await redis.connect();
    await redis.ping();
    return null;
  } catch (error) {
    const why = reason ?? (error instanceof Error ? error.message : String(error));
    return `no usable Redis at ${new URL(url).host} (${why}): start one with redis-server, or leave out --redis`;
  } finally {
    redis.disconnect();
  }
}
