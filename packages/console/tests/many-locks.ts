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

/** Copies the keys of one semaphore. */
const COPY = `
  for n = 1, tonumber(ARGV[1]) do
    for _, key in ipairs(KEYS) do redis.call('COPY', key, (string.gsub(key, 'first', tostring(n)))) end
  end`;

/** Adds the semaphores `first` and `1` to `n`. */
export async function addSemaphores(redis: RedisScene, n: number): Promise<void> {
  await redis.holdfast.semaphore("first", { permits: 2 }).acquire({ leaseMs: 600_000 });
  const keys = (await redis.server.command("KEYS", "*semaphore*{first}*")) as string[];
  await redis.server.command("EVAL", COPY, keys.length, ...keys, n);
}
