import { strict as assert } from "node:assert";
import { createMutexes, ioredis } from "holdfast/mutex";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const mutexes = createMutexes({ client: ioredis(redis) });

await mutexes.mutex("order:42").run(async () => charge());

async function charge(): Promise<void> {
  assert.equal(await mutexes.mutex("order:42").tryAcquire(), null);
}

await mutexes.close();
redis.disconnect();
