/** If a script selected its own database, it would lock where no other client looks. */
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/index.js";

test("a lock is kept only in the database that the caller chose", async () => {
  const server = await startRedis();
  const redis = new Redis({ port: server.port, db: 5 });
  const elsewhere = new Redis({ port: server.port });
  const holdfast = createHoldfast({ redis });
  try {
    const lease = await holdfast.mutex("order 42").acquire();
    await lease.extend(60_000);
    const permit = await holdfast.semaphore("order 42", { permits: 2 }).acquire();
    expect(await redis.get("hf:mutex:{order 42}")).toBe(lease.owner);
    expect(await redis.exists("hf:semaphore:{order 42}")).toBe(1);
    expect(await elsewhere.keys("hf:*")).toEqual([]);
    await permit.release();
    await lease.release();
    expect(await elsewhere.keys("hf:*")).toEqual([]);
  } finally {
    await holdfast.close();
    redis.disconnect();
    elsewhere.disconnect();
    await server.stop();
  }
});
