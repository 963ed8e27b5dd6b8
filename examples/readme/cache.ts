/** Reads users from a slow database, once for all callers in all processes. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { cache } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

interface User {
  id: string;
  name: string;
}

const table = new Map<string, User>();
let reads = 0;
const db = {
  async user(id: string, { signal }: { signal: AbortSignal }): Promise<User | null> {
    reads += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
    signal.throwIfAborted();
    return table.get(id) ?? null;
  },
  async rename(id: string, name: string): Promise<void> {
    table.set(id, { id, name });
  },
};

const users = cache<User | null>(holdfast, "user", {
  freshMs: 60_000, // returned without a reload
  staleMs: 600_000, // then still returned, while one process reloads it
  negativeMs: 5_000, // "no such user" is checked again sooner
});

async function userOf(id: string, signal?: AbortSignal) {
  return await users.get(
    id,
    (lease) => db.user(id, { signal: lease.signal }), // aborts when the last waiting caller gives up
    { waitMs: 2_000, ...(signal && { signal }) },
  );
}

async function rename(id: string, name: string) {
  await db.rename(id, name);
  await users.invalidate(id); // after the write: values read before it are not kept
}

const id = randomUUID();
assert.equal(await userOf(id), null);
await rename(id, "Ada");
const all = await Promise.all(Array.from({ length: 100 }, () => userOf(id)));
assert.equal(reads, 2);
for (const user of all) assert.deepEqual(user, { id, name: "Ada" });

await assert.rejects(userOf(id, AbortSignal.abort(new Error("the client has gone"))), /the client has gone/);

await holdfast.close();
redis.disconnect();
