// @ts-check
/**
 * Locks resources in a loop, with the original or the drop-in, and increments an unguarded counter while it holds the
 * lock.
 *
 * A referee, which is a server that is never killed, records the current holder. The counter is read on entering and
 * written on leaving, so a second holder would lose an update.
 */
import { randomUUID } from "node:crypto";
import { argv } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

/** @type {{ library: string, ports: number[], refereePort: number, names: string[], id: string }} */
const { library, ports, refereePort, names, id } = JSON.parse(argv[2] ?? "");
const { default: Redlock } = await import(library);

/** How long a lock lasts, in ms. After a holder is killed, waiters wait this long. */
const LOCK_MS = 2_000;
/**
 * Enters until the lock's validity ends, on the clock that all processes of a machine share. Reports another holder
 * that has entered and was not killed. Replies with the counter, or nothing if the validity has ended.
 */
const ENTER = `
local time = redis.call('TIME')
local restMs = tonumber(ARGV[2]) - math.ceil(time[1] * 1000 + time[2] / 1000)
if restMs < 1 then return false end
local other = redis.call('GET', KEYS[1])
if other and redis.call('SISMEMBER', 'killed', string.match(other, '^%S+')) == 0 then
  redis.call('RPUSH', 'overlaps', ARGV[1] .. ' met ' .. other)
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', restMs)
return redis.call('GET', KEYS[2]) or '0'`;
/** Writes the counter and leaves, unless the referee no longer knows this holder because it is too late. */
const LEAVE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[2] + 1)
redis.call('HINCRBY', 'added', KEYS[2], 1)
return redis.call('HINCRBY', 'by-library', ARGV[3], 1)`;

const referee = new Redis({ port: refereePort });
const clients = ports.map((port) => {
  // A killed server fails requests immediately.
  const client = new Redis({ port, maxRetriesPerRequest: 0, enableOfflineQueue: false, retryStrategy: () => 50 });
  client.on("error", () => {});
  return client;
});
await Promise.all(clients.map((client) => new Promise((resolve) => client.once("ready", resolve))));
const redlock = new Redlock(clients, { retryCount: 0, retryDelay: 20, retryJitter: 10 });
// While it retries, the original keeps its vote on a minority of servers, so its contenders could block each other
// for the duration of a lock. With a single attempt it releases the vote.
const retryCount = library === "redlock" ? 0 : 20;

while ((await referee.exists("stop")) === 0) {
  const name = names[Math.floor(Math.random() * names.length)] ?? "";
  const lock = await redlock.acquire([name], LOCK_MS, { retryCount }).catch(() => undefined);
  if (lock === undefined) {
    await sleep(10 + Math.random() * 20);
    continue;
  }
  const entry = `${id} ${library} ${randomUUID()}`;
  const counter = `counter:${name}`;
  const before = await referee.eval(ENTER, 2, `inside:${name}`, counter, entry, lock.expiration);
  if (before !== null) {
    await sleep(Math.random() * 4);
    await referee.eval(LEAVE, 2, `inside:${name}`, counter, entry, String(before), library);
  }
  await lock.release().catch(() => {});
}
for (const client of [referee, ...clients]) client.disconnect();
