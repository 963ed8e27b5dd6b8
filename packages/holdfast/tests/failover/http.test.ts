/** A request with an `Idempotency-Key` that is being carried out while a failover loses its key: it is recorded all the same. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { ioredis } from "../faults/scene.js";
import { ADAPTERS, type Site } from "../integrations/http/adapters.js";
import { post, type Reply } from "../integrations/http/client.js";
import { useFailoverScene } from "./failover-scene.js";

const scene = useFailoverScene();
let site: Site | undefined;
afterEach(() => site?.close());

describe.each(ADAPTERS)("on $name", { timeout: 150_000 }, (adapter) => {
  test("a request under way goes on, and its answer is recorded by the new master, and given again", async () => {
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
    // Until the new master may grant, and so say anything of a key, it was 503, and nothing else.
    expect(answered.slice(0, -1).every(({ status }) => status === 503)).toBe(true);
    expect(answered.at(-1)).toMatchObject({ text: first.text, headers: { "idempotency-replayed": "true" } });
    expect(handle).toHaveBeenCalledTimes(1);
  });
});
