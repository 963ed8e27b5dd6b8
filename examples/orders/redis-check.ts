/** Checks once whether Redis is reachable, so that a missing server causes one line of output instead of many. */
import { Redis } from "ioredis";

const ANSWER_WITHIN_MS = 3_000;

/** Null if the server replies; otherwise one line that says what is wrong and what to do. Never rejects. */
export async function whyRedisIsUnusable(url: string): Promise<string | null> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: ANSWER_WITHIN_MS,
    commandTimeout: ANSWER_WITHIN_MS,
  });
  // This event has the reason. The error of `connect` only says that the connection is closed.
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
