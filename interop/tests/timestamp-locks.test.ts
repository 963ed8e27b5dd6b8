/** The locks of the four articles, shared by Node and the program in its own language. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type PeerEvent, type TimestampLock, type TimestampOptions, timestampLock } from "@holdfast/interop/timestamp";
import { AcquireTimeoutError, createHoldfast, type Holdfast, LeaseLostError } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sleep, until } from "../../packages/holdfast/src/testing/delays.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { startProxy } from "../../tests/support/tcp-proxy.js";
import { ARTICLES, type ArticleClient, lockAtLast } from "./articles.js";
import { CONTENTION_MS, type Contender, contendHere, IS_LONG_RUN, tell } from "./contention.js";
import { type ClockedSettings, type Peer, startJedis } from "./peer.js";

const PATIENCE_MS = 40_000;
const LONG_LEASE_MS = 120_000;
const SHORT_LEASE_MS = 1_000;
const SKEW_MS = 1_000;
/** How many times both sides try to acquire an expired lock at the same moment. */
const RACES = IS_LONG_RUN ? 1_000 : 40;
/** The largest delay between the two sides: long enough that each side is sometimes first, even on a busy machine. */
const RACE_WITHIN_MS = 80;

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let java: Peer;
let count = 0;
const started: ArticleClient[] = [];
const events: PeerEvent[] = [];
const onEvent = (event: unknown): void => void events.push(event as PeerEvent);

beforeAll(async () => {
  java = startJedis();
  server = await startRedis();
  redis = new Redis(server.url);
  holdfast = createHoldfast({ redis });
  subscribe("holdfast:peer", onEvent);
});
afterAll(async () => {
  await Promise.all(started.map((client) => client.crash()));
  unsubscribe("holdfast:peer", onEvent);
  await holdfast.close();
  redis.disconnect();
  await java.stop();
  await server.stop();
});

function seen({ key }: TimestampLock): string[] {
  return events.filter((event) => event.key === key).map(({ what }) => what);
}

// Most of the time is spent waiting for leases to end, so several tests run concurrently.
describe.concurrent.each(ARTICLES.map((article) => [article.title, article] as const))("%s", (_, article) => {
  const { dialect } = article;
  const unitMs = dialect.unit === "s" ? 1_000 : 1;

  async function client(settings: Partial<ClockedSettings> = {}): Promise<ArticleClient> {
    const one = await article.start({ port: server.port, ...settings }, java);
    started.push(one);
    return one;
  }
  function shared(options: TimestampOptions = {}): { name: string; lock: TimestampLock } {
    count += 1;
    const name = `shared:${count}`;
    return { name, lock: timestampLock(holdfast, name, dialect, options) };
  }
  /** The value that a client would write for a lock that ends in `inMs` milliseconds. */
  const ending = (inMs: number): string => String(Math.floor((Date.now() + inMs) / unitMs));

  test("Holdfast is refused a lock that the other client holds, and gets it after the release", async () => {
    const { name, lock } = shared();
    const there = await client();
    expect(await there.tryLock(name)).toBe(true);
    expect(await redis.exists(lock.key), "both mean the same key").toBe(1);
    expect(await lock.tryAcquire()).toBeNull();
    const waiting = lock.acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
    await there.unlock(name);
    const lease = await waiting;
    expect(await there.tryLock(name)).toBe(false);
    expect(await redis.pttl(lock.key), "ours expire").toBeGreaterThan(LONG_LEASE_MS);
    expect(await lease.release()).toBe("released");
  });

  test("the other client is refused a lock that Holdfast holds, and gets it after the release", async () => {
    const { name, lock } = shared();
    const there = await client();
    const lease = await lock.acquire({ leaseMs: LONG_LEASE_MS });
    expect(await there.tryLock(name)).toBe(false);
    expect(await lease.release()).toBe("released");
    expect(await redis.exists(lock.key)).toBe(0);
    expect(await there.tryLock(name)).toBe(true);
    expect(await lock.tryAcquire()).toBeNull();
  });

  test("a lease that Holdfast renews outlives its length, and the other client stays refused", async () => {
    const { name, lock } = shared();
    const there = await client();
    const leaseMs = 4 * SHORT_LEASE_MS;
    const lease = await lock.acquire({ leaseMs });
    const overAtMs = Date.now() + leaseMs + dialect.paddingMs + SKEW_MS + unitMs;
    while (Date.now() <= overAtMs) {
      expect(await there.tryLock(name)).toBe(false);
      await sleep(50);
    }
    expect(await lease.release()).toBe("released");
    await lockAtLast(there, name);
  });

  test("Holdfast gets the lock of a dead holder of the other client when its time is over, not before", async () => {
    const { name, lock } = shared();
    const dying = await client();
    expect(await dying.tryLock(name)).toBe(true);
    await dying.crash();
    // A short lease instead of the default of half a minute.
    const value = ending(2 * SHORT_LEASE_MS);
    await redis.set(lock.key, value, "KEEPTTL");
    expect(await lock.tryAcquire()).toBeNull();
    const lease = await lock.acquire({ waitMs: PATIENCE_MS });
    const [seconds] = await redis.time();
    expect(Number(seconds) * 1_000 + 999).toBeGreaterThanOrEqual(Number(value) * unitMs);
    expect(await lease.release()).toBe("released");
  });

  test("the other client gets the lock of a dead holder of Holdfast when its time is over, not before", async () => {
    const { name, lock } = shared();
    const there = await client();
    const dying = new Redis(server.url);
    const dead = createHoldfast({ redis: dying });
    await timestampLock(dead, name, dialect).acquire({ leaseMs: 2 * SHORT_LEASE_MS });
    const value = Number.parseInt(String(await redis.get(lock.key)), 10);
    dying.disconnect();
    expect(await there.tryLock(name)).toBe(false);
    // A client of article A that asks during the second in which a lock ends prolongs that lock, so it asks after
    // that second.
    await until(() => Date.now() >= (value + 1) * unitMs, "its time is over");
    expect(await there.tryLock(name)).toBe(true);
    expect(await lock.tryAcquire()).toBeNull();
    await dead.close();
  });

  test("a forced release ends the hold of the other client, and no other hold", async () => {
    const { name, lock } = shared();
    const there = await client();
    await there.tryLock(name);
    const [holder] = (await lock.inspect()).holders;
    expect(holder?.owner).toBe(await redis.get(lock.key));
    expect(await lock.forceRelease({ owner: "somebody else" })).toBe(false);
    expect(await lock.forceRelease({ owner: holder?.owner ?? "" })).toBe(true);
    const lease = await lock.acquire({ leaseMs: LONG_LEASE_MS });
    expect(await there.tryLock(name)).toBe(false);
    expect(await lease.release()).toBe("released");
  });

  test("a client that overruns and then unlocks may delete a lock of Holdfast, which is notified and does not restore it", async () => {
    const { name, lock } = shared();
    const late = await client();
    await late.tryLock(name);
    await redis.set(lock.key, ending(-5_000));
    const lease = await lock.acquire({ leaseMs: LONG_LEASE_MS });
    await late.unlock(name);
    if (!article.frees) {
      expect(await lease.release()).toBe("released");
      return;
    }
    expect(await redis.exists(lock.key)).toBe(0);
    await expect(lease.extend(LONG_LEASE_MS)).rejects.toThrow(LeaseLostError);
    expect(lease.signal.aborted).toBe(true);
    expect(seen(lock)).toContain("deleted");
    expect(await redis.exists(lock.key)).toBe(0);
  });

  test("a client whose clock is ahead by more than the lease takes a lock of Holdfast, which is notified", async () => {
    const { name, lock } = shared();
    const lease = await lock.acquire({ leaseMs: 5_000 });
    const ahead = await client({ clockAheadMs: 60_000 });
    expect(await ahead.tryLock(name)).toBe(true);
    await expect(lease.extend(5_000)).rejects.toThrow(LeaseLostError);
    expect(lease.signal.aborted).toBe(true);
  });

  test("only one side gets an expired lock that both want at the same time", {
    timeout: RACES * 500 + 60_000,
  }, async () => {
    const there = await client();
    const winners = { here: 0, there: 0 };
    for (let race = 0; race < RACES; race += 1) {
      const { name, lock } = shared();
      await redis.set(lock.key, ending(-5_000));
      const laterMs = (Math.random() - 0.5) * RACE_WITHIN_MS;
      const [isTheirs, ours] = await Promise.all([
        sleep(Math.max(0, -laterMs)).then(() => there.tryLock(name)),
        sleep(Math.max(0, laterMs)).then(() => lock.tryAcquire({ leaseMs: LONG_LEASE_MS })),
      ]);
      expect([isTheirs, ours !== null].filter(Boolean)).toHaveLength(1);
      if (ours === null) {
        winners.there += 1;
        continue;
      }
      winners.here += 1;
      // The losing client may have overwritten the value.
      expect(await ours.release()).toBe("released");
    }
    tell(`${article.title}, races`, JSON.stringify(winners));
    expect(winners.here).toBeGreaterThan(0);
    expect(winners.there).toBeGreaterThan(0);
  });

  test("a counter that only the lock protects loses no update, with both sides at random", {
    timeout: 2 * CONTENTION_MS + 90_000,
  }, async () => {
    // A waiter of article A that finds the lock free overwrites the value of a client that is faster. No holder
    // overruns its lease here.
    const { name, lock } = shared({ overwritten: "delete" });
    const counter = `counter of ${name}`;
    await redis.set(counter, 0);
    const [one, other] = [await client(), await client()];
    // Clients of article B retry without a pause, and its lock is free only for a moment every few seconds, so turns
    // are not guaranteed.
    const here = (): Promise<Contender> =>
      contendHere(redis, counter, () =>
        article.frees
          ? lock.acquire({ waitMs: PATIENCE_MS })
          : lock.acquire({ waitMs: PATIENCE_MS / 8 }).catch((error: unknown) => {
              if (error instanceof AcquireTimeoutError) return null;
              throw error;
            }),
      );
    const all = await Promise.all([
      one.contend(name, counter, CONTENTION_MS),
      other.contend(name, counter, CONTENTION_MS),
      here(),
      here(),
    ]);
    const report = JSON.stringify(all);
    const rounds = all.map((each) => each.rounds);
    const total = rounds.reduce((sum, each) => sum + each, 0);
    const counted = Number(await redis.get(counter));
    tell(article.title, `${total} rounds, ${total - counted} lost: ${report}`);
    expect(counted, report).toBe(total);
    expect(total, report).toBeGreaterThan(0);
    if (article.frees) for (const each of rounds) expect(each, report).toBeGreaterThan(0);
    for (const { longestWaitMs } of all) expect(longestWaitMs, report).toBeLessThanOrEqual(PATIENCE_MS);
  });

  if (article.takeover === undefined) return;
  const takeover = article.takeover;

  test("a client that loses a takeover overwrites the value of Holdfast, whose hold continues and ends normally", async () => {
    const { name, lock } = shared();
    const proxy = await startProxy(server.port);
    const late = await client({ port: proxy.port });
    await redis.set(lock.key, ending(-5_000));
    const held = proxy.hold(takeover);
    const losing = late.tryLock(name);
    await held.reached;
    const lease = await lock.acquire({ leaseMs: LONG_LEASE_MS });
    held.release();
    expect(await losing).toBe(false);
    await lease.extend(LONG_LEASE_MS);
    expect(seen(lock), "it has written all the same, by a look or the renewal it was found").toContain("overwritten");
    expect(await (await client()).tryLock(name), "the end of it is ours again").toBe(false);
    expect(Number(await redis.get(lock.key)) * unitMs).toBeGreaterThan(Date.now() + LONG_LEASE_MS);
    expect(lease.signal.aborted).toBe(false);
    expect(await lease.release()).toBe("released");
    await proxy.close();
  });

  test("Holdfast waits for a lock that another client left behind without holding it", async () => {
    const { name, lock } = shared();
    const proxy = await startProxy(server.port);
    const late = await client({ port: proxy.port });
    await redis.set(lock.key, ending(-5_000));
    const held = proxy.hold(takeover);
    const trying = late.tryLock(name);
    await held.reached;
    await redis.del(lock.key);
    held.release();
    // A client of article A treats a deleted lock as its own. The others leave a lock that nobody holds.
    expect(await trying).toBe(dialect === ARTICLES[0]?.dialect);
    expect(await lock.tryAcquire()).toBeNull();
    await redis.set(lock.key, ending(SHORT_LEASE_MS));
    const lease = await lock.acquire({ waitMs: PATIENCE_MS });
    expect(await lease.release()).toBe("released");
    await proxy.close();
  });
});
