/** A web server takes the lock for an import, and a worker in another process continues with the same lease. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { createHoldfast, type ExportedLease, type Holdfast, LeaseLostError, UnsupportedError } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const web = createHoldfast({ redis });
const worker = createHoldfast({ redis });
const messages: string[] = [];
const queue = { send: async (message: string) => void messages.push(message) };
const imported: { shop: string; fence: number }[] = [];

// In the web server:
async function startImport(holdfast: Holdfast, shop: string): Promise<boolean> {
  const lease = await holdfast.mutex(`import:${shop}`).tryAcquire({ leaseMs: 60_000, label: "import" });
  if (lease === null) return false; // an import of this shop is queued or running
  const exported = lease.export(); // from now on, this process does not hold the lock
  await queue.send(JSON.stringify({ shop, exported }));
  return true;
}

// In the worker, before the minute is over:
async function onMessage(holdfast: Holdfast, message: string): Promise<void> {
  const { shop, exported } = JSON.parse(message) as { shop: string; exported: ExportedLease };
  await using lease = await holdfast.adopt(exported); // renewed from now on; released when the block ends
  await importRows(shop, { fence: lease.token, signal: lease.signal });
}

async function importRows(shop: string, { fence, signal }: { fence: number; signal: AbortSignal }): Promise<void> {
  signal.throwIfAborted();
  assert.equal(await worker.mutex(`import:${shop}`).tryAcquire(), null, "the worker holds the lock");
  imported.push({ shop, fence });
}

const shop = randomUUID();
const imports = worker.mutex(`import:${shop}`);
assert.equal(await startImport(web, shop), true);
assert.equal(await startImport(web, shop), false, "the lock stays held on its way to the worker");
const [message = ""] = messages;
const { exported } = JSON.parse(message) as { exported: ExportedLease };
await onMessage(worker, message);
assert.deepEqual(imported, [{ shop, fence: exported.token }]);
assert.deepEqual((await imports.inspect()).holders, [], "the worker released the lock");
await assert.rejects(onMessage(worker, message), { code: "ERR_LOCK_LEASE_LOST" });

// The old lease has ended, but nothing that its process does releases the lock.
const sender = createHoldfast({ redis });
const old = await sender.mutex(`import:${shop}`).acquire({ maxHoldMs: 3_600_000 });
const { signal } = old;
const json = JSON.stringify(old.export());
assert.equal(old.validForMs(), 0);
assert.deepEqual(sender.held(), []);
assert.throws(() => old.assertHeld(), { code: "ERR_LOCK_LEASE_LOST", reason: "handed-over" });
assert.throws(() => old.export(), { reason: "handed-over" });
await assert.rejects(old.extend(30_000), { reason: "handed-over" });
assert.equal(await old.release(), "released");
await sender.close();
assert.equal(signal.aborted, false);
assert.equal(await imports.tryAcquire(), null);

// A second call, another prefix, and a string: none of them gets the lease.
const stranger = createHoldfast({ redis, prefix: randomUUID() });
await assert.rejects(stranger.adopt(JSON.parse(json)), LeaseLostError);
await assert.rejects(worker.adopt(json as never), TypeError);
const paused = await web.pause(imports.name, { label: "maintenance", by: "ana" });
const adopted = await worker.adopt(JSON.parse(json));
assert.equal(paused.outcome, "paused");
assert.notEqual(adopted.owner, old.owner);
await assert.rejects(web.adopt(JSON.parse(json)), LeaseLostError);
adopted.assertHeld();
await adopted.release();
await web.resume(imports.name, { by: "ana" });

// The sender takes the lease back, if it cannot send the message.
const unsent = await imports.run((lease) => lease.export());
assert.equal(await imports.tryAcquire(), null, "run did not release the lock");
await (await worker.adopt(unsent)).release();

// A lease that no process adopts ends by itself. So it is too late to adopt it.
const forgotten = (await imports.acquire({ leaseMs: 100 })).export();
const next = await imports.acquire();
await assert.rejects(worker.adopt(forgotten), LeaseLostError);
await next.release();

// Not all leases can move. A refused export leaves the lease as it was.
const both = await web.multiLock([`a:${shop}`, `b:${shop}`]).acquire();
assert.throws(() => both.export(), UnsupportedError);
both.assertHeld();
await both.release();

await Promise.all([web.close(), worker.close(), stranger.close()]);
redis.disconnect();
