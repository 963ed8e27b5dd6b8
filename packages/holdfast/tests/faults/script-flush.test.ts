/** A server whose script cache is flushed repeatedly while the scripts are in use. */
import { expect, test } from "vitest";
import { LONG_MS, SHORT_MS, sleep, until } from "../../src/testing/delays.js";
import { ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

/** Number of NOSCRIPT replies so far. */
async function refused(): Promise<number> {
  const errors = String(await scene.server.command("INFO", "errorstats"));
  return Number(/errorstat_NOSCRIPT:count=(\d+)/.exec(errors)?.[1] ?? 0);
}

test("callers exclude each other and tokens rise while the script cache is flushed every few milliseconds", async () => {
  const { name, server } = scene;
  const clients = [await scene.client(ioredis), await scene.client(nodeRedis)];
  const failures: string[] = [];
  const tokens: number[] = [];
  let inside = 0;
  let most = 0;
  let isOver = false;
  const caller = async (index: number): Promise<void> => {
    while (!isOver) {
      await clients[index % 2]
        ?.mutex(name)
        .run(
          async (lease) => {
            inside += 1;
            most = Math.max(most, inside);
            tokens.push(lease.token);
            await new Promise(setImmediate);
            inside -= 1;
          },
          { waitMs: LONG_MS, leaseMs: LONG_MS },
        )
        .catch((error: unknown) => failures.push(String(error)));
    }
  };
  const callers = Promise.all(Array.from({ length: 20 }, (_, index) => caller(index)));
  await until(async () => {
    await server.command("SCRIPT", "FLUSH");
    await sleep(2);
    return tokens.length > 200 && (await refused()) > 50;
  }, "200 sections and 50 forgotten scripts");
  isOver = true;
  await callers;

  expect(failures).toEqual([]);
  expect(most).toBe(1);
  expect(tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? Infinity))).toBe(true);
  expect(await scene.holder()).toBeNull();
  expect(await server.command("EXISTS", scene.keys.queue)).toBe(0);
  await sleep(SHORT_MS);
  expect(await scene.holder(), "and nothing comes after").toBeNull();
});

test.each([ioredis, nodeRedis])(
  "no call on $name fails because the script cache is flushed meanwhile",
  async (library) => {
    const { name, server } = scene;
    const holdfast = await scene.client(library, { commandTimeoutMs: 60_000 });
    let isOver = false;
    const flushing = (async () => {
      while (!isOver) {
        const flushedAtMs = performance.now();
        await server.command("SCRIPT", "FLUSH");
        // Loading a script takes several round trips, because the server is checked before and after it. On a busy
        // machine each round trip takes longer.
        await sleep(Math.max(5, 10 * (performance.now() - flushedAtMs)));
      }
    })();
    const failures = new Set<string>();
    let calls = 0;
    await until(async () => {
      try {
        const lease = await holdfast.mutex(name).tryAcquire({ leaseMs: LONG_MS });
        await lease?.extend(LONG_MS);
        await holdfast.mutex(name).inspect();
        await lease?.release();
      } catch (error) {
        failures.add(String(error));
      }
      calls += 4;
      return calls >= 100 && (await refused()) > 50;
    }, "100 calls and 50 forgotten scripts").finally(() => {
      isOver = true;
    });
    await flushing;
    expect([...failures]).toEqual([]);
  },
);

test.each([ioredis, nodeRedis])(
  "concurrent calls on $name load a script once after the script cache is flushed",
  async (library) => {
    const { name, server } = scene;
    const holdfast = await scene.client(library, { commandTimeoutMs: 60_000 });
    const loads = async (): Promise<number> => {
      const stats = String(await server.command("INFO", "commandstats"));
      return Number(/cmdstat_script\|load:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    const all = async (): Promise<void> => {
      const acquires = Array.from({ length: 500 }, (_, i) =>
        holdfast.mutex(`${name}:${i}`).tryAcquire({ leaseMs: LONG_MS }),
      );
      for (const lease of await Promise.all(acquires)) await lease?.release();
    };
    await all();
    await server.command("SCRIPT", "FLUSH");
    const before = await loads();
    await all();
    // Acquire and release, and what a client asks and reports about its server and itself.
    expect((await loads()) - before).toBeLessThanOrEqual(10);
  },
);
