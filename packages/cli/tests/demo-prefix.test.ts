/** Tests two demos that start at the same moment. */
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startRedis } from "../../../tests/support/redis-server.js";
import { givePrefixBack, removeKeys, takePrefix } from "../src/demo/leftovers.js";

test("only one of two demos gets the prefix, until it returns the prefix", async () => {
  const server = await startRedis();
  const clients = [new Redis(server.url), new Redis(server.url)] as const;
  const [first, second] = clients;
  try {
    const taken = await Promise.all(clients.map((client) => takePrefix(client, [client], 600_000)));
    expect(taken.filter((isTaken) => isTaken)).toHaveLength(1);
    expect(await takePrefix(second, [second], 600_000)).toBe(false);
    // The marker is not counted, and is removed last.
    expect(await removeKeys([first])).toBe(0);
    await givePrefixBack(first);
    expect(await takePrefix(second, [second], 600_000)).toBe(true);
  } finally {
    for (const client of clients) client.disconnect();
    await server.stop();
  }
});
