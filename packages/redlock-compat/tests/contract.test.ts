/** Properties of redlock 5 that users rely on; both the original and the drop-in must have them. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DROP_IN, LIBRARIES, type Library, ORIGINAL } from "./libraries.js";
import { names, PLACES, type Place } from "./places.js";

/** Longer than any test takes. */
const LONG_MS = 600_000;
const SOON = { retryDelay: 5, retryJitter: 2 };
const NO_QUORUM = "The operation was unable to achieve a quorum during its retry window.";

describe.each(PLACES)("on %s", (_, start) => {
  let place: Place;
  beforeAll(async () => {
    place = await start();
  });
  afterAll(() => place?.stop());

  /** The values of a resource on all servers. */
  const values = (name: string): Promise<(string | null)[]> =>
    Promise.all(place.clients.map((client) => client.get(name)));
  const all = (value: string | null): (string | null)[] => place.clients.map(() => value);

  describe.each(LIBRARIES)("%s", (__, library) => {
    const create = (settings = {}): InstanceType<Library["default"]> =>
      new library.default(place.clients as never, { ...SOON, ...settings });

    test("a lock is its value under each resource, with an expiry, until it is released", async () => {
      const resources = names(2);
      const lock = await create().acquire(resources, LONG_MS);
      expect(lock).toBeInstanceOf(library.Lock);
      expect(lock.resources).toEqual(resources);
      for (const name of resources) {
        await expect.poll(() => values(name)).toEqual(all(lock.value));
        for (const client of place.clients) expect(await client.pttl(name)).toBeGreaterThan(0);
      }
      expect(lock.expiration).toBeGreaterThan(Date.now());
      const { attempts } = (await lock.release()) as { attempts: Promise<{ votesFor: Set<unknown> }>[] };
      expect(lock.expiration).toBe(0);
      expect((await attempts[0])?.votesFor.size).toBe(place.clients.length);
      for (const name of resources) await expect.poll(() => values(name)).toEqual(all(null));
    });

    test("an extended lock has a new expiry and the same value, and ends the lock that it continues", async () => {
      const [name = ""] = names(1);
      const first = await create().acquire([name], LONG_MS);
      const next = await first.extend(3 * LONG_MS);
      // `extend` needs only a majority; this waits for the other servers.
      await Promise.all(next.attempts);
      expect(next.value).toBe(first.value);
      expect(first.expiration).toBe(0);
      expect(next.expiration).toBeGreaterThan(Date.now() + 2 * LONG_MS);
      for (const client of place.clients) expect(await client.pttl(name)).toBeGreaterThan(2 * LONG_MS);
      await expect(first.extend(LONG_MS)).rejects.toThrow("Cannot extend an already-expired lock.");
      await next.release();
    });

    test("a lock may last longer than any timer", async () => {
      const [name = ""] = names(1);
      const duration = Math.floor(Number.MAX_SAFE_INTEGER / 10);
      const lock = await create().acquire([name], duration);
      const next = await lock.extend(3 * duration);
      await Promise.all(next.attempts);
      for (const client of place.clients) expect(await client.pttl(name)).toBeGreaterThan(2 * duration);
      await next.release();
      await expect.poll(() => values(name)).toEqual(all(null));
    });

    test("a locked resource is refused after all retries, with the votes of each attempt, and stays as it was", async () => {
      const [one = "", other = "", third = ""] = names(3);
      const holder = await create().acquire([one, other], LONG_MS);
      const error = await create({ retryCount: 2 })
        .acquire([other, third], LONG_MS)
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(library.ExecutionError);
      const { message, name, attempts } = error as InstanceType<Library["ExecutionError"]>;
      expect({ message, name }).toEqual({ message: NO_QUORUM, name: "ExecutionError" });
      expect(attempts).toHaveLength(3);
      for (const stats of await Promise.all(attempts)) {
        const against = [...stats.votesAgainst.values()];
        expect(against).toHaveLength(place.clients.length);
        for (const vote of against) {
          expect(vote).toBeInstanceOf(library.ResourceLockedError);
          expect(vote.message).toBe("The operation was applied to: 0 of the 2 requested resources.");
        }
      }
      await expect.poll(() => values(other)).toEqual(all(holder.value));
      await expect.poll(() => values(third)).toEqual(all(null));
      await holder.release();
    });

    test("settings of one call take the place of those of the instance", async () => {
      const [name = ""] = names(1);
      const redlock = create({ retryCount: 50 });
      const holder = await redlock.acquire([name], LONG_MS);
      const error = await redlock.acquire([name], LONG_MS, { retryCount: 0 }).catch((reason: unknown) => reason);
      expect((error as { attempts: unknown[] }).attempts).toHaveLength(1);
      await holder.release();
    });

    test("with retryCount -1 a waiter waits until the resource is free", async () => {
      const [name = ""] = names(1);
      const redlock = create({ retryCount: -1 });
      const holder = await redlock.acquire([name], LONG_MS);
      const waiting = redlock.acquire([name], LONG_MS);
      await expect.poll(() => values(name)).toEqual(all(holder.value));
      await holder.release();
      const next = await waiting;
      await expect.poll(() => values(name)).toEqual(all(next.value));
      await next.release();
    });

    test("an expired lock is free, and its late release fails and leaves the next lock alone", async () => {
      const [name = ""] = names(1);
      const late = await create().acquire([name], LONG_MS);
      await Promise.all(place.clients.map((client) => client.pexpire(name, 1)));
      await expect.poll(() => values(name)).toEqual(all(null));
      const next = await create({ retryCount: -1 }).acquire([name], LONG_MS);
      await expect(late.release()).rejects.toBeInstanceOf(library.ExecutionError);
      await expect.poll(() => values(name)).toEqual(all(next.value));
      await next.release();
    });

    test("using extends the lock while its routine runs, and returns the routine's value", async () => {
      const [name = ""] = names(1);
      // The first extension is due after 0.4 s, a minute before the lock ends.
      const redlock = create({ automaticExtensionThreshold: 59_000 });
      const inside = redlock.using([name], 60_000, {}, async (signal) => {
        const [client] = place.clients;
        const value = await client?.get(name);
        let shortestMs = Infinity;
        await expect
          .poll(async () => {
            const restMs = (await client?.pttl(name)) ?? 0;
            shortestMs = Math.min(shortestMs, restMs);
            return restMs > shortestMs;
          })
          .toBe(true);
        expect(signal.aborted).toBe(false);
        await expect.poll(() => values(name)).toEqual(all(value ?? ""));
        return value;
      });
      expect(await inside).toMatch(/^[0-9a-f]{32}$/);
      await expect.poll(() => values(name)).toEqual(all(null));
    });

    test("the signal of using aborts with an error when the lock is gone, and using rejects", async () => {
      const [name = ""] = names(1);
      const redlock = create({ automaticExtensionThreshold: 1_900, retryCount: 0 });
      let seen: unknown;
      const inside = redlock.using([name], 2_000, {}, async (signal) => {
        await Promise.all(place.clients.map((client) => client.del(name)));
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
        seen = (signal as { error?: unknown }).error;
      });
      await expect(inside).rejects.toBeInstanceOf(library.ExecutionError);
      expect(seen).toBeInstanceOf(library.ExecutionError);
    });

    test("a name may have braces that are no hash tag", async () => {
      for (const name of ["{}", "{}x", "}", "}{", "a}b{c", "{}{a}", "{", "{{a}}", "{a}}", ""]) {
        const lock = await create({ retryCount: 0 }).acquire([name], LONG_MS);
        const next = await lock.extend(LONG_MS);
        await expect(create({ retryCount: 0 }).acquire([name], LONG_MS)).rejects.toBeInstanceOf(library.ExecutionError);
        await next.release();
        await expect.poll(() => values(name)).toEqual(all(null));
      }
    });

    test("an error event tells of each vote against, and needs no listener", async () => {
      const [name = ""] = names(1);
      const redlock = create({ retryCount: 0 });
      const holder = await redlock.acquire([name], LONG_MS);
      const votes: unknown[] = [];
      redlock.on("error", (error) => votes.push(error));
      await redlock.acquire([name], LONG_MS).catch(() => {});
      expect(votes.filter((vote) => vote instanceof library.ResourceLockedError).length).toBeGreaterThan(0);
      await holder.release();
    });
  });

  test.each([
    ["redlock 5", ORIGINAL, DROP_IN],
    ["the drop-in", DROP_IN, ORIGINAL],
  ])("a lock of %s keeps the other library out until it is released", async (__, mine, other) => {
    const resources = names(2);
    const lock = await new mine.default(place.clients as never, SOON).acquire(resources, LONG_MS);
    const theirs = new other.default(place.clients as never, { ...SOON, retryCount: -1 });
    for (const name of resources) {
      const once = theirs.acquire([name], LONG_MS, { retryCount: 0 });
      await expect(once).rejects.toBeInstanceOf(other.ExecutionError);
    }
    const waiting = theirs.acquire(resources, LONG_MS);
    await lock.release();
    await (await waiting).release();
  });
});

describe.each(LIBRARIES)("%s", (_, library) => {
  const nowhere = { once: () => {}, status: "end" } as never;

  test("invalid calls are refused before anything is sent", async () => {
    expect(() => new library.default([])).toThrow("Redlock must be instantiated with at least one redis client.");
    const redlock = new library.default([nowhere]);
    const whole = "Duration must be an integer value in milliseconds.";
    await expect(redlock.acquire(["a"], 1.5)).rejects.toThrow(whole);
    await expect(redlock.using(["a"], 1.5, {}, async () => {})).rejects.toThrow(whole);
    await expect(redlock.using(["a"], 550, {}, async () => {})).rejects.toThrow(
      "A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.",
    );
    await expect(redlock.using(["a"], 1_000, {}, undefined as never)).rejects.toThrow("routine is not a function");
  });

  test.each([[undefined], [null], [7], [new Set(["a"])]])("resources that are %s are not locked", async (resources) => {
    const evalsha = async (_hash: string, keyCount: unknown): Promise<unknown> => {
      if (typeof keyCount !== "number") throw new Error("ERR value is not an integer or out of range");
      return Math.min(1, keyCount);
    };
    const redlock = new library.default([{ evalsha } as never], { retryCount: 0 });
    const failed = { name: "ExecutionError", message: NO_QUORUM, attempts: [expect.any(Promise)] };
    const errors: unknown[] = [];
    redlock.on("error", (error) => errors.push(error));
    const error = await redlock.acquire(resources as never, LONG_MS).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(library.ExecutionError);
    expect(error).toMatchObject(failed);
    const [stats] = await Promise.all((error as InstanceType<Library["ExecutionError"]>).attempts);
    expect([...(stats?.votesAgainst.values() ?? [])]).toEqual([expect.any(Error)]);
    expect(errors.length).toBeGreaterThan(0);
    let isRun = false;
    const routine = async (): Promise<void> => {
      isRun = true;
    };
    await expect(redlock.using(resources as never, LONG_MS, {}, routine)).rejects.toMatchObject(failed);
    expect(isRun).toBe(false);
  });

  test("a server that cannot be reached fails each attempt with the client's own error", async () => {
    const client = new Redis({ port: 1, maxRetriesPerRequest: 0, retryStrategy: () => null, lazyConnect: true });
    client.on("error", () => {});
    const redlock = new library.default([client], { ...SOON, retryCount: 2 });
    const error = await redlock.acquire(["a"], LONG_MS).catch((reason: unknown) => reason);
    const { attempts } = error as InstanceType<Library["ExecutionError"]>;
    expect(attempts).toHaveLength(3);
    const [last] = [...((await attempts[2])?.votesAgainst.values() ?? [])];
    expect(last?.message).toBe("Connection is closed.");
  });
});
