/** A process that stalls past a deadline while the reply is in its socket: the reply counts as on time. */
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { storeFor } from "../../src/stores/detect.js";
import { COUNT, ROWS } from "./rows.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());

const stands = new Int32Array(new SharedArrayBuffer(4));

test.each(ROWS.filter(({ name }) => /^(ioredis 6|node-redis 6|GLIDE 2\.5)$/.test(name)))(
  "a reply that arrives during a stall of the process counts as on time: $name",
  async (row) => {
    const client = await row.connect(server.port);
    const store = storeFor(client, { subscriber: row.subscriber(server.port) });
    const before = await store.run(COUNT, [`{${row.name}}`], [], 60_000);
    await server.command("CLIENT", "PAUSE", 150, "ALL");
    const answer = store.run(COUNT, [`{${row.name}}`], [], 100);
    // Until the library has written the request.
    for (let turns = 0; turns < 10; turns += 1) await turn();
    Atomics.wait(stands, 0, 0, 1_500);
    expect(await answer).toBe(Number(before) + 1);
    await store.close();
    await row.disconnect(client);
  },
);
