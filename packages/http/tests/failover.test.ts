/**
 * A request with an `Idempotency-Key` that runs during a failover which loses its key. Its reply is recorded anyway.
 */
import { afterEach, describe, expect, test, vi } from "vitest";
import { useFailoverScene } from "../../holdfast/tests/failover/failover-scene.js";
import { ioredis } from "../../holdfast/tests/faults/scene.js";
import { ADAPTERS, type Site } from "./adapters.js";
import { post, type Reply } from "./client.js";

const scene = useFailoverScene();
let site: Site | undefined;
afterEach(() => site?.close());

describe.each(ADAPTERS)("on $name", { timeout: 150_000 }, (adapter) => {
  test("a request in progress continues, and the new master records and replays its reply", async () => {
    const holdfast = await scene.client(ioredis);
    const handle = vi.fn(async () => {
      await scene.failOver();
      return { status: 201, body: { paid: true } };
    });
    site = await adapter.serve(holdfast, { options: { leaseMs: 5_000 }, handle });
    await scene.cutReplication();
    const request = { key: scene.name, body: { amount: 5 } };
    const first = await post(site.url, request);
    expect([first.status, first.headers["idempotency-status"]]).toEqual([201, undefined]);

    const answered: Reply[] = [];
    const url = site.url;
    await vi.waitFor(
      async () => {
        const reply = await post(url, request);
        answered.push(reply);
        expect(reply.status).toBe(201);
      },
      { timeout: 45_000, interval: 100 },
    );
    // Until the new master may grant, it cannot say anything about a key, so the status is 503.
    expect(answered.slice(0, -1).every(({ status }) => status === 503)).toBe(true);
    expect(answered.at(-1)).toMatchObject({ text: first.text, headers: { "idempotency-replayed": "true" } });
    expect(handle).toHaveBeenCalledTimes(1);
  });
});
