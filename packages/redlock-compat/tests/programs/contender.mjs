// @ts-check
/**
 * Locks resources in a loop, with the original or the drop-in, and raises an unguarded counter while it holds one.
 *
 * A referee, a server that is never killed, records who is inside. The counter is read on entering and written on leaving, so a
 * second holder would lose an update.
 */
import { randomUUID } from "node:crypto";
import { argv } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

/** @type {{ library: string, ports: number[], refereePort: number, names: string[], id: string }} */
const { library, ports, refereePort, names, id } = JSON.parse(argv[2] ?? "");
const { default: Redlock } = await import(library);

/** How long a lock lasts, in ms. Waiters of a killed holder wait for its end. */
const LOCK_MS = 2_000;
/**
 * Enters until the end of the lock's validity, by the clock that all processes of a machine share. Complains about another holder
 * that is inside and was not killed. Replies with the counter, or nothing if the validity is over.
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
/** Leaves and writes the counter, unless the referee has forgotten this holder, which is then too late. */
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
// The original keeps its vote on a minority while it retries, so on several servers its contenders could block each other for a lock's
// length. One attempt at a time releases it.
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
