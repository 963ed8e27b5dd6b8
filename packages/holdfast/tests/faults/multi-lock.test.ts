/** Multi-locks of several processes, each with its own order of names, on a real server. */
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { LONG_MS } from "../../src/testing/delays.js";
import { startOpposite } from "./programs/programs.js";

/** Set FAULT_FACTOR for a longer run. */
const SECTIONS = 500 * Number(process.env.FAULT_FACTOR ?? 1);

test("two processes that lock the same names in opposite order 1000 times never deadlock or time out", async () => {
  const server = await startRedis();
  const redis = new Redis({ port: server.port });
  const processes = [startOpposite(server.port), startOpposite(server.port)] as const;
  try {
    const names = ["a", "b", "c"].map((letter) => `opposite:${letter}`);
    await Promise.all(processes.map((process) => process.call("ready")));
    const order = { sections: SECTIONS, callers: 2, waitMs: LONG_MS };
    const longest = await Promise.all([
      processes[0].call<number>("work", { ...order, names }),
      processes[1].call<number>("work", { ...order, names: names.toReversed() }),
    ]);
    for (const longestMs of longest) expect(longestMs).toBeLessThan(LONG_MS);
    expect(await redis.mget(names)).toEqual(names.map(() => String(2 * SECTIONS)));
    const left = (await redis.keys("hf:mutex:*opposite*")).filter((key) => !key.endsWith(":fence"));
    expect(left).toEqual([]);
  } finally {
    await Promise.all(processes.map((process) => process.kill()));
    redis.disconnect();
    await server.stop();
  }
}, 150_000);
