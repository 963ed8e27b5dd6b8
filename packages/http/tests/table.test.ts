/** The response to a request with an `Idempotency-Key`, on every framework. */
import { randomUUID } from "node:crypto";
import { resolveOnce } from "@holdfast/recipes";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { onceKeyOf } from "../src/fingerprint.js";
import { ADAPTERS, type Ask, type CaseOptions, type Plan, type Said, type Site } from "./adapters.js";
import { post, type Reply } from "./client.js";

const eventually = { timeout: 15_000, interval: 10 };
let server: RedisServer;
let clients: Redis[];
let holdfast: Holdfast;
let other: Holdfast;
let key: string;
let open: (() => Promise<unknown>)[];

beforeAll(async () => {
  server = await startRedis();
  clients = [new Redis({ port: server.port }), new Redis({ port: server.port })];
  [holdfast, other] = clients.map((client) => createHoldfast({ redis: client })) as [Holdfast, Holdfast];
});
afterAll(async () => {
  await Promise.all([holdfast?.close(), other?.close()]);
  for (const client of clients ?? []) client.disconnect();
  await server?.stop();
});
beforeEach(() => {
  key = randomUUID();
  open = [];
});
afterEach(async () => {
  for (const close of open.toReversed()) await close();
});

function problem(name: string): object {
  return { type: `urn:holdfast:idempotency:${name}`, title: expect.any(String), detail: expect.any(String) };
}

function expectProblem(reply: Reply, status: number, name: string): void {
  expect([reply.status, JSON.parse(reply.text)]).toEqual([status, { ...problem(name), status }]);
  expect(reply.headers["content-type"]).toBe("application/problem+json");
}

describe.each(ADAPTERS)("$name", (adapter) => {
  async function serve(plan: Plan, on: Holdfast = holdfast): Promise<Site> {
    const site = await adapter.serve(on, plan);
    open.push(() => site.close());
    return site;
  }

  /** A service that counts its runs. */
  function counted(
    options: CaseOptions = {},
    said: (run: number, ask: Ask) => Said | Promise<Said> = numbered,
  ): {
    plan: Plan;
    handle: ReturnType<typeof vi.fn>;
  } {
    let run = 0;
    const handle = vi.fn((ask: Ask) => {
      run += 1;
      return said(run, ask);
    });
    return { plan: { options, handle }, handle };
  }

  function numbered(run: number): Said {
    return { status: 201, headers: { location: `/payments/${run}` }, body: { run } };
  }

  describe("the header", () => {
    test("may be missing unless `required` is set", async () => {
      const strict = counted({ required: true });
      expectProblem(await post((await serve(strict.plan)).url, { body: {} }), 400, "missing");
      expect(strict.handle).not.toHaveBeenCalled();
      const lax = counted();
      const { url } = await serve(lax.plan);
      for (const run of [1, 2]) expect(JSON.parse((await post(url, { body: {} })).text)).toEqual({ run });
    });

    test.each([
      ["empty", ""],
      ["an empty quoted string", '""'],
      ["too long", "x".repeat(256)],
      ["two lines", ["a", "b"]],
      ["two lines that a proxy has joined", "a, b"],
      ["two Strings that a proxy has joined", '"a", "b"'],
      ["a String without its end", '"abc'],
      ["with a tab inside", "a\tb"],
    ])("is malformed if it is %s", async (_, value) => {
      const { plan, handle } = counted();
      expectProblem(await post((await serve(plan)).url, { key: value, body: {} }), 400, "malformed");
      expect(handle).not.toHaveBeenCalled();
    });

    test("means the same key with and without quotes, and in Latin-1; `strict` requires a String", async () => {
      const { plan } = counted();
      const { url } = await serve(plan);
      const runs: number[] = [];
      for (const value of [key, `"${key}"`, `"${key}";v=1`, `${key}-\u00e9`, `"${key}-\u00e9"`]) {
        runs.push(JSON.parse((await post(url, { key: value, body: {} })).text).run);
      }
      expect(runs).toEqual([1, 1, 1, 2, 2]);
      const strict = await serve(counted({ strict: true }).plan);
      for (const value of [key, `"${key}-\u00e9"`]) {
        expectProblem(await post(strict.url, { key: value, body: {} }), 400, "malformed");
      }
      expect((await post(strict.url, { key: `"${key}"`, body: {} })).status).toBe(201);
    });

    test("is ignored for GET and HEAD", async () => {
      const { plan, handle } = counted({ required: true });
      const { url } = await serve(plan);
      for (const _ of [1, 2])
        expect((await post(url, { method: "GET", key })).headers).not.toHaveProperty("idempotency-replayed");
      const head = await post(url, { method: "HEAD", key });
      expect([head.status, head.text]).toEqual([201, ""]);
      expect(handle).toHaveBeenCalledTimes(3);
    });
  });

  describe("a key", () => {
    test("that is done replays the status, some headers and the exact body of the first response", async () => {
      const bytes = Buffer.from([0, 255, 128, 10, 13]);
      const headers = {
        "content-type": "application/octet-stream",
        location: "/payments/7",
        etag: '"7"',
        "set-cookie": ["a=1", "b=2"],
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "x-other": "1",
      };
      const { plan, handle } = counted({}, () => ({ status: 202, headers, body: bytes }));
      const first = await post((await serve(plan)).url, { key, body: { a: 1 } });
      const again = await post((await serve(plan, other)).url, { key, body: { a: 1 } });
      expect([first.status, first.body, first.headers["set-cookie"]]).toEqual([202, bytes, ["a=1", "b=2"]]);
      expect(first.headers).toMatchObject({ traceparent: headers.traceparent, "x-other": "1" });
      expect(first.headers).not.toHaveProperty("idempotency-replayed");
      expect(first.headers).not.toHaveProperty("idempotency-status");
      expect([again.status, again.body]).toEqual([202, bytes]);
      const { "content-type": type, location, etag } = again.headers;
      expect({ type, location, etag, replayed: again.headers["idempotency-replayed"] }).toEqual({
        ...{ type: "application/octet-stream", location: "/payments/7", etag: '"7"', replayed: "true" },
      });
      for (const name of ["set-cookie", "traceparent", "x-other"]) expect(again.headers).not.toHaveProperty(name);
      expect(handle).toHaveBeenCalledTimes(1);
    });

    test("sent in twenty concurrent requests to two services runs once", async () => {
      const { plan, handle } = counted({ whenRunning: { waitMs: 60_000 } });
      const urls = [(await serve(plan)).url, (await serve(plan, other)).url];
      const presses = Array.from({ length: 20 }, (_, at) => post(urls[at % 2] ?? "", { key, body: { a: 1 } }));
      const replies = await Promise.all(presses);
      expect(new Set(replies.map(({ status, text }) => `${status} ${text}`))).toEqual(new Set(['201 {"run":1}']));
      expect(replies.filter(({ headers }) => headers["idempotency-replayed"] === "true")).toHaveLength(19);
      expect(handle).toHaveBeenCalledTimes(1);
    });

    test("that is running gets 409 with `Retry-After`, or waits for the response", async () => {
      const began = deferred<void>();
      const end = deferred<void>();
      const { plan, handle } = counted({}, async (run) => {
        began.resolve();
        await end.promise;
        return numbered(run);
      });
      const { url } = await serve(plan);
      const first = post(url, { key, body: {} });
      await began.promise;
      const refused = await post(url, { key, body: {} });
      expectProblem(refused, 409, "running");
      expect(refused.headers["retry-after"]).toBe("1");
      const brief = await serve({ ...plan, options: { whenRunning: { waitMs: 20 } } }, other);
      expectProblem(await post(brief.url, { key, body: {} }), 409, "running");
      const patient = await serve({ ...plan, options: { whenRunning: { waitMs: 60_000 } } }, other);
      const waiting = post(patient.url, { key, body: {} });
      end.resolve();
      expect(await Promise.all([first, waiting])).toMatchObject([{ status: 201 }, { status: 201, text: '{"run":1}' }]);
      expect(handle).toHaveBeenCalledTimes(1);
    });

    test.each(["running", "abandoned", "done", "released", "without its answer", "blocked"])(
      "reused for another request is a mismatch when the first is %s",
      async (state) => {
        const end = deferred<void>();
        const began = deferred<void>();
        const keep = (): boolean | "block" => (state === "blocked" ? "block" : state !== "released");
        const { plan } = counted({ keep, bodyBytesMax: state === "without its answer" ? 0 : 1_000 }, async (run) => {
          began.resolve();
          if (state === "running") await end.promise;
          return numbered(run);
        });
        const { url } = await serve(plan);
        const first = post(url, { key, body: { secret: 1 } });
        if (state === "running") await began.promise;
        else await first;
        if (state === "abandoned") {
          // Simulates a process that crashed before it recorded a result.
          const record = `hf:once:{/${onceKeyOf("POST", "/payments/:id", key)}}`;
          await clients[0]?.hset(record, { state: "running", until: 1 });
        }
        for (const changed of [
          { body: { secret: 2 } },
          { body: { secret: 1 }, path: "/payments/8" },
          { body: { secret: 1 }, path: "/payments/7?a" },
        ]) {
          const reply = await post(url, { key, ...changed });
          expectProblem(reply, 422, "mismatch");
          expect(reply.text).not.toContain("secret");
          expect(reply.headers).not.toHaveProperty("retry-after");
        }
        end.resolve();
        await first;
      },
    );

    test("that is blocked gets 409 until `resolveOnce` sets its result", async () => {
      const { plan, handle } = counted({ keep: (status) => (status === 504 ? "block" : true) }, () => ({
        status: 504,
      }));
      const { url } = await serve(plan);
      expect((await post(url, { key, body: {} })).status).toBe(504);
      const refused = await post(url, { key, body: {} });
      expectProblem(refused, 409, "blocked");
      expect(refused.headers).not.toHaveProperty("retry-after");
      const value = { status: 200, headers: { "content-type": "text/plain" }, text: "paid" };
      const name = onceKeyOf("POST", "/payments/:id", key);
      expect(await resolveOnce(other, name, { value })).toBe(true);
      const resolved = await post(url, { key, body: {} });
      expect([resolved.status, resolved.text, resolved.headers["content-type"]]).toEqual([200, "paid", "text/plain"]);
      expect(handle).toHaveBeenCalledTimes(1);
    });

    test("gets 409 if the first response was too long to keep, and so marked as ignored", async () => {
      const long = "x".repeat(1_001);
      const { plan, handle } = counted({ bodyBytesMax: 1_000 }, () => ({ body: long }));
      const { url } = await serve(plan);
      const first = await post(url, { key, body: {} });
      expect([first.status, first.text, first.headers["idempotency-status"]]).toEqual([200, long, "ignored"]);
      const refused = await post(url, { key, body: {} });
      expectProblem(refused, 409, "result-unavailable");
      expect(refused.headers).not.toHaveProperty("retry-after");
      expect(handle).toHaveBeenCalledTimes(1);
    });

    test("is scoped to its tenant and method", async () => {
      const { plan, handle } = counted({ scope: "x-tenant" });
      const { url } = await serve(plan);
      const asTenant = (tenant: string, method = "POST"): Promise<Reply> =>
        post(url, { key, method, body: {}, headers: { "x-tenant": tenant } });
      const runs = [];
      for (const reply of [
        await asTenant("a"),
        await asTenant("b"),
        await asTenant("a", "PATCH"),
        await asTenant("a"),
      ]) {
        runs.push(JSON.parse(reply.text).run);
      }
      expect(runs).toEqual([1, 2, 3, 1]);
      expect((await asTenant("")).status).toBe(500);
      expect(handle).toHaveBeenCalledTimes(3);
    });

    test("means the same request regardless of the order of its properties", async () => {
      const { plan, handle } = counted();
      const { url } = await serve(plan);
      const first = await post(url, { key, body: '{"a":1,"b":{"c":[1,2],"d":null}}' });
      const again = await post(url, {
        key,
        body: '{ "b": {"d": null, "c": [1, 2]}, "a": 1.0 }',
        headers: { "content-type": "application/json; charset=utf-8" },
      });
      expect([again.status, again.text]).toEqual([first.status, first.text]);
      expectProblem(await post(url, { key, body: '{"a":1,"b":{"c":[2,1],"d":null}}' }), 422, "mismatch");
      expect(handle).toHaveBeenCalledTimes(1);
    });

    test.each([400, 404, 422, 401, 403, 408, 409, 425, 429, 500, 503])(
      "answered with %i is kept or runs again, depending on the status",
      async (status) => {
        const { plan, handle } = counted({}, () => ({ status, body: "no" }));
        const { url } = await serve(plan);
        for (const _ of [1, 2]) expect(await post(url, { key, body: {} })).toMatchObject({ status, text: "no" });
        expect(handle).toHaveBeenCalledTimes([400, 404, 422].includes(status) ? 1 : 2);
      },
    );
  });

  describe("without Redis", () => {
    test("requests get 503 unless `whenUnavailable` is `pass`", async () => {
      const proxy = await startProxy(server.port);
      const client = new Redis({ port: proxy.port, retryStrategy: () => 20, maxRetriesPerRequest: 0 });
      client.on("error", () => {});
      const local = createHoldfast({ redis: client, commandTimeoutMs: 300 });
      open.push(async () => {
        proxy.refuse(false);
        await local.close();
        client.disconnect();
        await proxy.close();
      });
      const { plan, handle } = counted();
      const { url } = await serve(plan, local);
      expect((await post(url, { key, body: {} })).status).toBe(201);
      proxy.refuse(true);
      proxy.cutAll();
      const refused = await post(url, { key: `${key}-2`, body: {} });
      expectProblem(refused, 503, "unavailable");
      expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
      expect(handle).toHaveBeenCalledTimes(1);
      const careless = await serve({ ...plan, options: { whenUnavailable: "pass" } }, local);
      const passed = await post(careless.url, { key: `${key}-2`, body: {} });
      expect([passed.status, passed.headers["idempotency-status"]]).toEqual([201, "unstored"]);
      expect(handle).toHaveBeenCalledTimes(2);
    });
  });

  test("every stored record expires", async () => {
    const { url } = await serve(counted().plan);
    await post(url, { key, body: {} });
    await vi.waitFor(async () => {
      const keys = (await (clients[0] as Redis).keys("hf:*")).filter((each) => each.includes(":once:"));
      expect(keys.length).toBeGreaterThan(0);
      for (const each of keys) expect(await (clients[0] as Redis).pttl(each), each).toBeGreaterThan(0);
    }, eventually);
  });
});
