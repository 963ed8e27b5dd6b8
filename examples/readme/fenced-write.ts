import { strict as assert } from "node:assert";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

// Compare and write in one step. The mark must live as long as the data does. Tokens are integers below 2^53, so
// Lua compares them exactly; the mark is stored as the text that came, not as a number made into text.
const FENCED_SET = `
  local seen = redis.call('HGET', KEYS[1], 'fence')
  if seen and tonumber(seen) > tonumber(ARGV[1]) then
    return 0
  end
  redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2])
  return 1`;

async function fencedSet(key: string, token: number, value: string): Promise<boolean> {
  return (await redis.eval(FENCED_SET, 1, key, token, value)) === 1;
}

const mutex = holdfast.mutex("stock");
const sleeper = await mutex.acquire({ leaseMs: 100, renew: false }); // and does not look at its lease again
const next = await mutex.acquire({ waitMs: 5_000 }); // granted when that lease is over

assert.equal(await fencedSet("stock:7", next.token, "written by the next holder"), true);
assert.equal(await fencedSet("stock:7", sleeper.token, "written too late"), false);
assert.equal(await redis.hget("stock:7", "value"), "written by the next holder");

await next.release();
await holdfast.close();
redis.disconnect();
