/** Writes many locks into the server of a test, in a fraction of the time that acquires take. */
import type { RedisScene } from "./scene.js";

/** Writes the keys that this many acquires would leave. */
const FILL = `
  for n = 1, tonumber(ARGV[1]) do
    redis.call('SET', (string.gsub(KEYS[1], 'first', tostring(n))), redis.call('GET', KEYS[1]), 'PX', 600000)
  end`;

/** Adds the mutexes `PREFIXfirst` and `PREFIX1` to `PREFIXn`. */
export async function addLocks(redis: RedisScene, n: number, prefix = ""): Promise<void> {
  await redis.holdfast.mutex(`${prefix}first`).acquire({ leaseMs: 600_000 });
  const [key] = (await redis.server.command("KEYS", `*mutex:{${prefix}first}`)) as string[];
  await redis.server.command("EVAL", FILL, 1, key ?? "", n);
}
