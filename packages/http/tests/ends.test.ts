/** How responses end: recorded before they are sent, passed through if they stream, and never with a stuck key. */
import { randomUUID } from "node:crypto";
import { channel } from "node:diagnostics_channel";
import { Agent } from "node:http";
import { gunzipSync } from "node:zlib";
import { inspectOnce } from "@holdfast/recipes";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../tests/support/tcp-proxy.js";
import { deferred, SHORT_MS, sleep } from "../../holdfast/src/testing/delays.js";
import { recipesOnceBegin, recipesOnceSettle } from "../../recipes/src/generated/scripts.js";
import type { IdempotencyEvent } from "../src/express/index.js";
import { onceKeyOf } from "../src/fingerprint.js";
import { ADAPTERS, type CaseOptions, type Plan, type Said, type Site } from "./adapters.js";
import { post } from "./client.js";

const eventually = { timeout: 15_000, interval: 10 };
let server: RedisServer;
let proxy: TcpProxy;
let clients: Redis[];
let holdfast: Holdfast;
/** Connected through the proxy. */
let far: Holdfast;
let key: string;
let open: (() => Promise<unknown>)[];

beforeAll(async () => {
  server = await startRedis();
  proxy = await startProxy(server.port);
  clients = [new Redis({ port: server.port }), new Redis({ port: proxy.port, retryStrategy: () => 20 })];
  for (const client of clients) client.on("error", () => {});
  [holdfast, far] = clients.map((client) => createHoldfast({ redis: client })) as [Holdfast, Holdfast];
});
afterAll(async () => {
  await Promise.all([holdfast?.close(), far?.close()]);
  for (const client of clients ?? []) client.disconnect();
  await proxy?.close();
  await server?.stop();
});
beforeEach(() => {
  key = randomUUID();
  open = [];
});
afterEach(async () => {
  for (const close of open.toReversed()) await close();
});

async function stateOf(of: string = key): Promise<string | undefined> {
  return (await inspectOnce(holdfast, onceKeyOf("POST", "/payments/:id", of)))?.state;
}

async function* written(...chunks: readonly string[]): AsyncIterable<string> {
  for (const chunk of chunks) {
    await sleep(1);
    yield chunk;
  }
}

describe.each(ADAPTERS)("$name", (adapter) => {
  async function serve(handle: Plan["handle"], options: CaseOptions = {}, more: Partial<Plan> = {}): Promise<Site> {
    const site = await adapter.serve(holdfast, { handle, options, ...more });
    open.push(() => site.close());
    return site;
  }

  async function serveFar(handle: Plan["handle"]): Promise<Site> {
    const site = await adapter.serve(far, { handle });
    open.push(() => site.close());
    return site;
  }

  describe("a response", () => {
    test("is sent only after it is recorded", async () => {
      const { url } = await serveFar(() => ({ status: 201, body: { paid: true } }));
      await post(url, { key: `${key}-warm`, body: {} });
      const settle = proxy.hold(new RegExp(`^evalsha ${recipesOnceSettle.sha1}`, "i"));
      let isHere = false;
      const reply = post(url, { key, body: {} }).finally(() => {
        isHere = true;
      });
      await settle.reached;
      await sleep(SHORT_MS);
      expect([isHere, await stateOf()]).toEqual([false, "running"]);
      settle.release();
      expect(await reply).toMatchObject({ status: 201, text: '{"paid":true}' });
      expect(await stateOf()).toBe("done");
    });

    test("is recorded once even if the server's reply is lost", async () => {
      const handle = vi.fn(() => ({ status: 201, body: { paid: true } }));
      const { url } = await serveFar(handle);
      await post(url, { key: `${key}-warm`, body: {} });
      for (const { sha1 } of [recipesOnceBegin, recipesOnceSettle]) {
        const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${sha1}`, "i"));
        const reply = await post(url, { key: `${key}-${sha1}`, body: {} });
        await struck;
        expect([reply.status, reply.headers["idempotency-status"]]).toEqual([201, undefined]);
        expect((await post(url, { key: `${key}-${sha1}`, body: {} })).headers["idempotency-replayed"]).toBe("true");
      }
      expect(handle).toHaveBeenCalledTimes(3);
    });

    test("that cannot be recorded is sent and marked as unstored", async () => {
      const heard: IdempotencyEvent[] = [];
      const listener = (event: unknown): void => void heard.push(event as IdempotencyEvent);
      channel("holdfast:idempotency").subscribe(listener);
      open.push(async () => channel("holdfast:idempotency").unsubscribe(listener));
      const { url } = await serve(async ({ lease }) => {
        // The server loses the record, as after a restart without persistence.
        await clients[0]?.del(`hf:once:{/${onceKeyOf("POST", "/payments/:id", key)}}`);
        return { status: 201, body: { token: lease?.token } };
      });
      const reply = await post(url, { key, body: {} });
      expect([reply.status, reply.headers["idempotency-status"]]).toEqual([201, "unstored"]);
      expect(JSON.parse(reply.text)).toEqual({ token: expect.any(Number) });
      expect(heard).toMatchObject([
        { method: "POST", route: "/payments/:id", outcome: "unstored", status: 201, error: expect.any(Error) },
      ]);
    });

    test("on a reused connection arrives in order, and a 204 is replayed without a body", async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const { url } = await serve(({ id }) => (id === "204" ? { status: 204 } : { status: 200, body: { id } }));
      const statuses = [];
      const sockets = new Set();
      for (const path of ["/payments/204", "/payments/1", "/payments/204", "/payments/1"]) {
        const reply = await post(url, {
          ...{ key: `${key}${path}`, path, body: {}, agent },
          onSent: (request) => request.once("socket", (socket) => sockets.add(socket)),
        });
        statuses.push([reply.status, reply.text, reply.headers["idempotency-replayed"]]);
      }
      expect(statuses).toEqual([
        [204, "", undefined],
        [200, '{"id":"1"}', undefined],
        [204, "", "true"],
        [200, '{"id":"1"}', "true"],
      ]);
      expect(sockets.size).toBe(1);
      agent.destroy();
    });

    test.each(["before", "after"] as const)(
      "compressed %s the middleware is replayed, also to clients that do not accept gzip",
      async (gzip) => {
        const text = "paid ".repeat(2_000);
        const handle = vi.fn((): Said => ({ headers: { "content-type": "text/plain" }, body: text }));
        const { url } = await serve(handle, {}, { gzip });
        const headers = { "accept-encoding": "gzip" };
        const first = await post(url, { key, body: {}, headers });
        expect([first.headers["content-encoding"], gunzipSync(first.body).toString()]).toEqual(["gzip", text]);
        const again = await post(url, { key, body: {}, headers });
        expect([again.headers["content-encoding"], gunzipSync(again.body).toString()]).toEqual(["gzip", text]);
        const plain = await post(url, { key, body: {} });
        expect([plain.headers["content-encoding"], plain.text]).toEqual([undefined, text]);
        expect(plain.headers["idempotency-replayed"]).toBe("true");
        expect(handle).toHaveBeenCalledTimes(1);
      },
    );
  });

  describe("a stream", () => {
    test("is sent as it is written, and uses up its key before the first byte", async () => {
      const seen = deferred<void>();
      async function* chunks(): AsyncIterable<string> {
        yield "one ";
        await seen.promise;
        yield "two";
      }
      const handle = vi.fn((): Said => ({ headers: { "content-type": "text/plain" }, chunks: chunks() }));
      const { url } = await serve(handle);
      let text = "";
      const first = post(url, {
        ...{ key, body: {} },
        onSent: (request) =>
          request.once("response", (response) => {
            response.on("data", (chunk: Buffer) => {
              text += chunk.toString();
            });
          }),
      });
      await vi.waitFor(() => expect(text).toBe("one "), eventually);
      expect(await stateOf()).toBe("bare");
      const refused = await post(url, { key, body: {} });
      expect([refused.status, JSON.parse(refused.text).type]).toEqual([
        409,
        "urn:holdfast:idempotency:result-unavailable",
      ]);
      seen.resolve();
      const reply = await first;
      expect([reply.text, reply.headers["idempotency-status"]]).toEqual(["one two", "ignored"]);
      expect(handle).toHaveBeenCalledTimes(1);
    });

    test("of server-sent events is passed through and not kept", async () => {
      const headers = { "content-type": "text/event-stream" };
      const { url } = await serve(() => ({ headers, body: "data: 1\n\n" }));
      const first = await post(url, { key, body: {} });
      expect([first.text, first.headers["idempotency-status"]]).toEqual(["data: 1\n\n", "ignored"]);
      expect((await post(url, { key, body: {} })).status).toBe(409);
    });

    test("longer than `bodyBytesMax` is sent in full and not kept", async () => {
      const parts = Array.from({ length: 40 }, (_, at) => String(at).padEnd(1_000, "."));
      const headers = { "content-length": "40000" };
      const { url } = await serve(() => ({ headers, chunks: written(...parts) }), { bodyBytesMax: 10_000 });
      const first = await post(url, { key, body: {} });
      expect([first.text, first.headers["idempotency-status"]]).toEqual([parts.join(""), "ignored"]);
    });

    test("with a known length is recorded", async () => {
      const headers = { "content-length": "6", "content-type": "text/plain" };
      const { url } = await serve(() => ({ headers, chunks: written("abc", "def") }));
      for (const replayed of [undefined, "true"]) {
        const reply = await post(url, { key, body: {} });
        expect([reply.text, reply.headers["idempotency-replayed"]]).toEqual(["abcdef", replayed]);
      }
    });
  });

  describe("a key is not stuck", () => {
    test("when the handler fails", async () => {
      const handle = vi.fn().mockRejectedValueOnce(new Error("a bug")).mockReturnValue({ status: 201 });
      const { url } = await serve(handle);
      vi.spyOn(console, "error").mockImplementation(() => {});
      expect((await post(url, { key, body: {} })).status).toBe(500);
      vi.restoreAllMocks();
      expect(await stateOf()).toBe("released");
      expect((await post(url, { key, body: {} })).status).toBe(201);
      expect(handle).toHaveBeenCalledTimes(2);
    });

    test("when the handler fails after a recovery point, which the retry receives", async () => {
      const found: unknown[] = [];
      vi.spyOn(console, "error").mockImplementation(() => {});
      const { url } = await serve(async ({ lease }) => {
        found.push(lease?.saved);
        if (found.length > 1) return { status: 201, body: { tries: found.length } };
        await lease?.save({ charged: "r-1" });
        throw new Error("no answer from the printer");
      });
      expect((await post(url, { key, body: { amount: 1 } })).status).toBe(500);
      vi.restoreAllMocks();
      expect((await post(url, { key, body: { amount: 1 } })).status).toBe(201);
      expect(found).toEqual([undefined, { charged: "r-1" }]);
    });

    test("when the client disconnects early: the response is still recorded", async () => {
      const began = deferred<void>();
      const end = deferred<void>();
      const handle = vi.fn(async (): Promise<Said> => {
        began.resolve();
        await end.promise;
        return { status: 201, body: { paid: true } };
      });
      const { url } = await serve(handle);
      let leave = (): void => {};
      const gone = post(url, { key, body: {}, onSent: (request) => (leave = () => void request.destroy()) });
      await began.promise;
      leave();
      await expect(gone).rejects.toThrow();
      end.resolve();
      await vi.waitFor(async () => expect(await stateOf()).toBe("done"), eventually);
      const again = await post(url, { key, body: {} });
      expect([again.status, again.text, again.headers["idempotency-replayed"]]).toEqual([201, '{"paid":true}', "true"]);
      expect(handle).toHaveBeenCalledTimes(1);
    });

    test("when a waiting client disconnects: its request never runs", async () => {
      const began = deferred<void>();
      const end = deferred<void>();
      const handle = vi.fn(async (): Promise<Said> => {
        began.resolve();
        await end.promise;
        return { status: 500 };
      });
      const { url, connections } = await serve(handle, { whenRunning: { waitMs: 60_000 } });
      const channelName = `hf:once:{/${onceKeyOf("POST", "/payments/:id", key)}}:ended`;
      const listeners = async (): Promise<unknown> => (await clients[0]?.pubsub("NUMSUB", channelName))?.[1];
      const first = post(url, { key, body: {} });
      await began.promise;
      let leave = (): void => {};
      const gone = post(url, { key, body: {}, onSent: (request) => (leave = () => void request.destroy()) });
      await vi.waitFor(async () => expect(await listeners()).toBe(1), eventually);
      leave();
      await expect(gone).rejects.toThrow();
      await vi.waitFor(async () => expect(await connections()).toBe(1), eventually);
      end.resolve();
      expect((await first).status).toBe(500);
      expect((await post(url, { key, body: {} })).status).toBe(500);
      expect(handle).toHaveBeenCalledTimes(2);
    });

    test("when the handler never responds: `maxHoldMs` ends its lease", async () => {
      const handle = vi.fn().mockReturnValueOnce({ never: true }).mockReturnValue({ status: 201 });
      const { url } = await serve(handle, { leaseMs: 1_500, maxHoldMs: 300 });
      let leave = (): void => {};
      const hung = post(url, { key, body: {}, onSent: (request) => (leave = () => void request.destroy()) });
      hung.catch(() => {});
      await vi.waitFor(() => expect(handle).toHaveBeenCalledTimes(1), eventually);
      await vi.waitFor(async () => expect((await post(url, { key, body: {} })).status).toBe(201), eventually);
      expect(handle).toHaveBeenCalledTimes(2);
      leave();
    });

    test("when the handler responds too late: its response is unstored, and the retry's is kept", async () => {
      const end = deferred<void>();
      const late = async (): Promise<Said> => {
        await end.promise;
        return { status: 201, body: { by: "late" } };
      };
      const handle = vi
        .fn()
        .mockImplementationOnce(late)
        .mockReturnValue({ status: 201, body: { by: "next" } });
      const { url } = await serve(handle, { leaseMs: 1_500, maxHoldMs: 300 });
      const first = post(url, { key, body: {} });
      await vi.waitFor(() => expect(handle).toHaveBeenCalledTimes(1), eventually);
      await vi.waitFor(async () => expect((await post(url, { key, body: {} })).text).toBe('{"by":"next"}'), eventually);
      end.resolve();
      const reply = await first;
      expect([reply.status, reply.text, reply.headers["idempotency-status"]]).toEqual([
        201,
        '{"by":"late"}',
        "unstored",
      ]);
      expect((await post(url, { key, body: {} })).text).toBe('{"by":"next"}');
      expect(handle).toHaveBeenCalledTimes(2);
    });

    // A Hono handler cannot access the connection.
    if (adapter.name === "hono 4") return;
    test("when the handler destroys the connection", async () => {
      const handle = vi.fn(({ destroy }): Said => {
        if (handle.mock.calls.length > 1) return { status: 201 };
        destroy();
        return { never: true };
      });
      const { url } = await serve(handle);
      await expect(post(url, { key, body: {} })).rejects.toThrow();
      await vi.waitFor(async () => expect(await stateOf()).toBe("released"), eventually);
      expect((await post(url, { key, body: {} })).status).toBe(201);
    });
  });

  test("the handler gets a lease whose token rises with each attempt", async () => {
    const { url } = await serve(({ lease }) => ({
      status: lease?.attempt === 1 ? 503 : 200,
      body: { attempt: lease?.attempt, token: lease?.token, isHeld: lease?.signal.aborted === false },
    }));
    const [first, second] = [await post(url, { key, body: {} }), await post(url, { key, body: {} })];
    const [one, two] = [JSON.parse(first?.text ?? ""), JSON.parse(second?.text ?? "")];
    expect([one, two]).toMatchObject([
      { attempt: 1, isHeld: true },
      { attempt: 2, isHeld: true },
    ]);
    expect(two.token).toBeGreaterThan(one.token);
  });

  test.each([
    ["a promise, which would keep every response", async () => false],
    ["undefined, which would keep no response", () => undefined],
  ])("an invalid result of `keep` blocks the key: %s", async (_, keep) => {
    const heard: IdempotencyEvent[] = [];
    const listener = (event: unknown): void => void heard.push(event as IdempotencyEvent);
    channel("holdfast:idempotency").subscribe(listener);
    open.push(async () => channel("holdfast:idempotency").unsubscribe(listener));
    const { url } = await serve(() => ({ status: 500 }), { keep: keep as never });
    const first = await post(url, { key, body: {} });
    expect([first.status, first.headers["idempotency-status"]]).toEqual([500, "unstored"]);
    expect(String(heard[0]?.error)).toContain('keep must return true, false or "block"');
    expect((await post(url, { key, body: {} })).text).toContain("urn:holdfast:idempotency:blocked");
  });

  test("an error in `keep` blocks the key, and the response is still sent", async () => {
    const keep = (): never => {
      throw new Error("a bug in keep");
    };
    const { url } = await serve(() => ({ status: 201 }), { keep });
    const first = await post(url, { key, body: {} });
    expect([first.status, first.headers["idempotency-status"]]).toEqual([201, "unstored"]);
    expect((await post(url, { key, body: {} })).text).toContain("urn:holdfast:idempotency:blocked");
  });
});
