/** Request bodies: parsed, unread, or consumed by other middleware that did not keep them. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { inspectOnce } from "@holdfast/recipes";
import express5, { type Express, type RequestHandler } from "express";
import fastify from "fastify";
import { createHoldfast, type Holdfast, UnsupportedError } from "holdfast";
import { Hono } from "hono";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { idempotency as forExpress } from "../src/express/index.js";
import { idempotency as forFastify } from "../src/fastify/index.js";
import { idempotency as forHono, onceKeyOf } from "../src/hono/index.js";
import { ADAPTERS, listen, type Site } from "./adapters.js";
import { post } from "./client.js";

const express4 = createRequire(import.meta.url)("express4") as typeof express5;
let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let key: string;
let open: (() => Promise<unknown>)[];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
});
afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  await server?.stop();
});
beforeEach(() => {
  key = randomUUID();
  open = [];
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of open.toReversed()) await close();
});

function opened(site: Site): string {
  open.push(() => site.close());
  return site.url;
}

const formHeaders = { "content-type": "application/x-www-form-urlencoded" };

describe.each([
  ["express 5", express5],
  ["express 4", express4],
])("%s", (_, express) => {
  function app(...before: RequestHandler[]): Express {
    const made = express();
    for (const each of before) made.use(each);
    return made;
  }

  test("an unread body is compared and stays readable for the handler", async () => {
    const made = app();
    made.post(
      "/payments/:id",
      forExpress(holdfast),
      express.text({ type: "*/*", limit: "1mb" }),
      (request, response) => {
        response.json({ length: String(request.body).length });
      },
    );
    const url = opened(await listen(made));
    // A body in one chunk, a body in many chunks, and an empty body.
    for (const body of ["x".repeat(10), "y".repeat(300_000), ""]) {
      const first = await post(url, { key: `${key}${body.length}`, body, headers: { "content-type": "text/plain" } });
      if (body !== "") expect(JSON.parse(first.text)).toEqual({ length: body.length });
      expect(first.status).toBe(200);
      const changed = await post(url, {
        key: `${key}${body.length}`,
        body: `${body}!`,
        headers: { "content-type": "text/plain" },
      });
      expect(changed.status).toBe(422);
      const again = await post(url, { key: `${key}${body.length}`, body, headers: { "content-type": "text/plain" } });
      expect([again.text, again.headers["idempotency-replayed"]]).toEqual([first.text, "true"]);
    }
  });

  test("an unread body over the size limit is refused with 413", async () => {
    const made = app();
    const handle = vi.fn();
    made.post("/payments/:id", forExpress(holdfast), handle);
    const url = opened(await listen(made));
    const headers = { "content-type": "text/plain" };
    const answer = await post(url, { key, body: "x".repeat(1_100_000), headers });
    expect([answer.status, answer.headers["content-type"]]).toEqual([413, "application/problem+json"]);
    expect(JSON.parse(String(answer.text))).toMatchObject({ type: "urn:holdfast:idempotency:too-large", status: 413 });
    expect(handle).not.toHaveBeenCalled();
  });

  test("a chunked body over the size limit is refused with 413 and its connection stays usable", async () => {
    const made = app();
    made.post("/payments/:id", forExpress(holdfast), vi.fn());
    made.get("/health", (_request, response) => void response.send("well"));
    const { host, hostname, port } = new URL(opened(await listen(made)));
    const socket = connect(Number(port), hostname);
    let heard = "";
    socket.setEncoding("utf8").on("data", (text: string) => (heard += text));
    const lines = ["POST /payments/1 HTTP/1.1", `host: ${host}`, `idempotency-key: ${key}`, "content-type: text/plain"];
    socket.write(`${[...lines, "transfer-encoding: chunked", "", ""].join("\r\n")}`);
    const chunk = "x".repeat(1_000_000);
    for (let i = 0; i < 8; i += 1) socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    socket.write(`0\r\n\r\nGET /health HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    await once(socket, "close");
    expect(heard.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 413", "HTTP/1.1 200"]);
    expect(heard).toMatch(/well$/);
  });

  test("forms are compared by their fields, and raw JSON as JSON", async () => {
    const made = app(express.urlencoded({ extended: false }), express.raw({ type: "application/json" }));
    const handle = vi.fn((_request, response) => response.json({}));
    made.post("/payments/:id", forExpress(holdfast), handle);
    const url = opened(await listen(made));
    await post(url, { key, body: "a=1&b=2", headers: formHeaders });
    expect((await post(url, { key, body: "b=2&a=1", headers: formHeaders })).status).toBe(200);
    expect((await post(url, { key, body: "b=2&a=2", headers: formHeaders })).status).toBe(422);
    await post(url, { key: `${key}-2`, body: '{"a":1,"b":2}' });
    expect((await post(url, { key: `${key}-2`, body: '{"b":2, "a":1}' })).status).toBe(200);
    expect(handle).toHaveBeenCalledTimes(2);
  });

  test("a body that was consumed and not kept is an error unless `fingerprint` is set", async () => {
    // Consumes the body like an upload parser.
    const swallow: RequestHandler = (request, _response, next) => {
      request.resume();
      request.once("end", () => next());
    };
    const handle = vi.fn((_request, response) => response.json({}));
    const made = app(swallow);
    made.post("/payments/:id", forExpress(holdfast), handle);
    made.post("/uploads/:id", forExpress(holdfast, { fingerprint: (request) => request.get("digest") }), handle);
    vi.spyOn(console, "error").mockImplementation(() => {});
    const url = opened(await listen(made));
    const refused = await post(url, { key, body: "abc", headers: { "content-type": "text/plain" } });
    expect([refused.status, handle.mock.calls.length]).toEqual([500, 0]);
    const upload = (digest: string): ReturnType<typeof post> =>
      post(url, { key, path: "/uploads/1", body: "abc", headers: { "content-type": "text/plain", digest } });
    expect([(await upload("a")).status, (await upload("a")).status, (await upload("b")).status]).toEqual([
      200, 200, 422,
    ]);
    expect(handle).toHaveBeenCalledTimes(1);
  });

  test("`next(error)` and thrown errors reach the error handler, and the key can be retried", async () => {
    let tries = 0;
    const made = app(express.json());
    made.post("/payments/:id", forExpress(holdfast), (_request, response, next) => {
      tries += 1;
      if (tries === 1) next(new Error("passed on"));
      else if (tries === 2) throw new Error("thrown");
      else response.end();
    });
    made.use(((error: Error, _request, response, _next) => {
      response.status(502).send(error.message);
    }) as express5.ErrorRequestHandler);
    const url = opened(await listen(made));
    const answers = [];
    for (let at = 0; at < 4; at += 1) {
      const { status, text, headers } = await post(url, { key, body: {} });
      answers.push([status, text, headers["idempotency-replayed"]]);
    }
    expect(answers).toEqual([
      [502, "passed on", undefined],
      [502, "thrown", undefined],
      [200, "", undefined],
      [200, "", "true"],
    ]);
  });

  test("a second response throws `ERR_HTTP_HEADERS_SENT`, and the first one is sent", async () => {
    const errors: unknown[] = [];
    const made = app(express.json());
    made.post("/payments/:id", forExpress(holdfast), (_request, response) => {
      response.status(201).json({ first: true });
      expect([response.headersSent, response.writableEnded]).toEqual([true, true]);
      try {
        response.status(500).json({ second: true });
      } catch (error) {
        errors.push(error);
      }
    });
    const url = opened(await listen(made));
    expect(await post(url, { key, body: {} })).toMatchObject({ status: 201, text: '{"first":true}' });
    expect(errors).toMatchObject([{ code: "ERR_HTTP_HEADERS_SENT" }]);
    expect((await post(url, { key, body: {} })).status).toBe(201);
  });

  test("middleware on all routes scopes the key to the path", async () => {
    const made = app(express.json(), forExpress(holdfast));
    made.post("/payments/:id", (request, response) => void response.json({ id: request.params.id }));
    const url = opened(await listen(made));
    for (const id of ["1", "2"]) {
      expect((await post(url, { key, path: `/payments/${id}`, body: {} })).text).toBe(`{"id":"${id}"}`);
    }
  });
});

test("fastify: a body that its parser turns into a stream is compared and stays readable", async () => {
  const app = fastify();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  const handle = vi.fn();
  app.post("/payments/:id", { preHandler: forFastify(holdfast) }, async (request) => {
    handle();
    for await (const _ of request.body as AsyncIterable<Buffer>);
    return {};
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  open.push(() => app.close());
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  // The stream is unread, so the middleware compares it and the handler can still read it.
  const headers = { "content-type": "application/pdf" };
  expect((await post(url, { key, body: "abc", headers })).status).toBe(200);
  expect((await post(url, { key, body: "abd", headers })).status).toBe(422);
  expect(handle).toHaveBeenCalledTimes(1);
});

test("hono: a body that was read earlier is compared, unless its content is no longer available", async () => {
  const app = new Hono();
  app.use("/json/:id", async (c, next) => {
    await c.req.json();
    await next();
  });
  app.use("/raw/:id", async (c, next) => {
    await c.req.raw.text();
    await next();
  });
  app.onError((error, c) => c.text(error.message, 500));
  app.post("/json/:id", forHono(holdfast), async (c) => c.json(await c.req.json()));
  app.post("/raw/:id", forHono(holdfast), (c) => c.json({}));
  app.post("/late/:id", forHono(holdfast), async (c) => c.json(await c.req.raw.json()));
  const ask = (path: string, body: object): Promise<Response> =>
    Promise.resolve(
      app.request(path, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": key },
        body: JSON.stringify(body),
      }),
    );
  for (const path of ["/json/1", "/late/1"]) {
    expect(await (await ask(path, { a: 1 })).json()).toEqual({ a: 1 });
    expect((await ask(path, { a: 1 })).headers.get("idempotency-replayed")).toBe("true");
    expect((await ask(path, { a: 2 })).status).toBe(422);
  }
  const refused = await ask("/raw/1", { a: 1 });
  expect([refused.status, await refused.text()]).toEqual([
    500,
    expect.stringContaining("was read before idempotency()"),
  ]);
});

test("fastify: a `null` body counts as a body", async () => {
  const app = fastify();
  const handle = vi.fn();
  app.post("/payments/:id", { preHandler: forFastify(holdfast) }, async (request) => {
    handle();
    return { body: request.body };
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  open.push(() => app.close());
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  for (const _ of [1, 2])
    expect(await post(url, { key, body: "null" })).toMatchObject({ status: 200, text: '{"body":null}' });
  expect((await post(url, { key, body: "0" })).status).toBe(422);
  expect(handle).toHaveBeenCalledTimes(1);
});

test("hono: a key is scoped to its own route even if other routes match the request", async () => {
  const app = new Hono();
  app.use("/api/*", forHono(holdfast));
  for (const name of ["a", "b"]) {
    app.post(`/${name}/:id`, forHono(holdfast), (c) => c.json({ name }));
    app.post(`/api/${name}/:id`, (c) => c.json({ name }));
  }
  app.all("/api/all/:id", (c) => c.json({ name: "l" }));
  // Most services end with such a catch-all route.
  app.all("*", (c) => c.text("there is no such thing", 404));
  const headers = { "idempotency-key": key };
  for (const path of ["/a/:id", "/b/:id", "/api/a/:id", "/api/b/:id", "/api/all/:id"]) {
    for (const replayed of [null, "true"]) {
      const reply = await app.request(path.replace(":id", "7"), { method: "POST", headers });
      expect([await reply.json(), reply.headers.get("idempotency-replayed")], path).toEqual([
        { name: path.at(-5) },
        replayed,
      ]);
    }
    expect(await inspectOnce(holdfast, onceKeyOf("POST", path, key)), path).toMatchObject({ state: "done" });
  }
});

test.each([
  ["says how long it is", true],
  ["does not say how long it is", false],
])("hono: the size limit applies to an unread body that %s", async (_, saysLength) => {
  const app = new Hono();
  const handle = vi.fn();
  app.post("/notes", forHono(holdfast, { requestBytesMax: 1_000 }), async (c) => {
    handle(await c.req.text());
    return c.json({});
  });
  const send = async (bytes: number): Promise<Response> => {
    const body = "x".repeat(bytes);
    const headers = { "idempotency-key": `${key}-${bytes}`, "content-type": "text/plain" };
    const init: RequestInit = saysLength
      ? { body, headers: { ...headers, "content-length": String(bytes) } }
      : { body: new Blob([body]).stream(), headers, duplex: "half" };
    return app.request("/notes", { method: "POST", ...init });
  };
  const refused = await send(1_001);
  expect([refused.status, refused.headers.get("content-type")]).toEqual([413, "application/problem+json"]);
  expect(await refused.json()).toMatchObject({ type: "urn:holdfast:idempotency:too-large" });
  expect(handle).not.toHaveBeenCalled();
  expect((await send(1_000)).status).toBe(200);
  expect(handle).toHaveBeenCalledExactlyOnceWith("x".repeat(1_000));
});

test.each(ADAPTERS)("$name: a request with an incomplete body runs nothing and stores nothing", async (adapter) => {
  const handle = vi.fn();
  const site = await adapter.serve(holdfast, { handle });
  open.push(() => site.close());
  const socket = connect(Number(new URL(site.url).port), "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const head = [
    "POST /payments/1 HTTP/1.1",
    "Host: x",
    `Idempotency-Key: ${key}`,
    "Content-Type: text/plain",
    "Content-Length: 10",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\nabc`);
  await vi.waitFor(async () => expect(await site.connections()).toBe(1), { timeout: 15_000 });
  socket.destroy();
  await vi.waitFor(async () => expect(await site.connections()).toBe(0), { timeout: 15_000 });
  expect((await redis.keys(`*${key}*`)).length).toBe(0);
  expect(handle).not.toHaveBeenCalled();
});

test.each([
  [{ required: 1 }, "required"],
  [{ scope: "tenant" }, "scope"],
  [{ keepMs: 14_999 }, "keepMs"],
  [{ leaseMs: 99 }, "leaseMs"],
  [{ maxHoldMs: 0 }, "maxHoldMs"],
  [{ whenRunning: "wait" }, "whenRunning"],
  [{ whenRunning: { waitMs: -1 } }, "whenRunning.waitMs"],
  [{ keep: [200] }, "keep"],
  [{ replayHeaders: "etag" }, "replayHeaders"],
  [{ replayHeaders: ["a b"] }, "replayHeaders"],
  [{ replayHeaders: ["Set-Cookie"] }, "replayHeaders"],
  [{ replayHeaders: ["date"] }, "replayHeaders"],
  [{ replayHeaders: ["traceparent"] }, "replayHeaders"],
  [{ requestBytesMax: -1 }, "requestBytesMax"],
  [{ bodyBytesMax: -1 }, "bodyBytesMax"],
  [{ whenUnavailable: "wait" }, "whenUnavailable"],
  [{ strict: "yes" }, "strict"],
  [{ fingerprint: 5 }, "fingerprint"],
  [{ ttl: 5 }, "ttl"],
])("an invalid option throws an error that names it: %o", (options, name) => {
  for (const make of [forExpress, forFastify, forHono]) expect(() => make(holdfast, options as object)).toThrow(name);
});

test("a wrong `holdfast` argument or a quorum throws immediately, not at the first request", async () => {
  const clients = [1, 2, 3].map(() => new Redis({ port: server.port }));
  const quorum = createHoldfast({ redlock: clients });
  for (const make of [forExpress, forFastify, forHono]) {
    expect(() => make(redis as never)).toThrow("holdfast must be the result of createHoldfast");
    expect(() => make(quorum)).toThrow(UnsupportedError);
    // The error must name the several servers as the reason.
    expect(() => make(quorum)).toThrow("cannot be on several independent servers");
  }
  await quorum.close();
  for (const client of clients) client.disconnect();
});
