/** Responses that switch protocols, over real sockets: they pass through, and their key is used up. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { inspectOnce } from "@holdfast/recipes";
import { type HttpBindings, serve } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import express from "express";
import fastify from "fastify";
import { createHoldfast, type Holdfast } from "holdfast";
import { Hono } from "hono";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { idempotency as forExpress } from "../src/express/index.js";
import { idempotency as forFastify } from "../src/fastify/index.js";
import { onceKeyOf } from "../src/fingerprint.js";
import { idempotency as forHono } from "../src/hono/index.js";
import { listen, type Site } from "./adapters.js";
import { post } from "./client.js";

const PATH = "/feeds/:id";
const HEADERS = { connection: "Upgrade", upgrade: "feed" };
let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let key: string;

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
});

/** Switches protocols like a handler does: writes the head, then its own data to the socket. */
function change(response: ServerResponse): void {
  response.writeHead(101, HEADERS);
  response.flushHeaders();
  response.socket?.write("hello");
}

type Handler = (response: ServerResponse) => void;

const SITES: Readonly<Record<string, (handle: Handler) => Promise<Site>>> = {
  express: (handle) => listen(express().post(PATH, forExpress(holdfast), (_, response) => handle(response))),
  async fastify(handle) {
    const app = fastify({ forceCloseConnections: true });
    app.post(PATH, { preHandler: forFastify(holdfast) }, (_, reply) => {
      reply.hijack();
      handle(reply.raw);
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = app.server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, connections: async () => 0, close: () => app.close() };
  },
  async hono(handle) {
    const app = new Hono<{ Bindings: HttpBindings }>();
    app.post(PATH, forHono(holdfast), (c) => {
      handle(c.env.outgoing);
      return RESPONSE_ALREADY_SENT;
    });
    const host = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server;
    await once(host, "listening");
    const { port } = host.address() as AddressInfo;
    const close = async (): Promise<void> => {
      host.closeAllConnections();
      await new Promise((resolve) => host.close(resolve));
    };
    return { url: `http://127.0.0.1:${port}`, connections: async () => 0, close };
  },
};

/** Requests an upgrade. @returns the head of the response, and the text that follows it on the socket */
async function upgrade(url: string): Promise<readonly [IncomingMessage, string]> {
  const asked = request(`${url}/feeds/7`, { method: "POST", headers: { ...HEADERS, "idempotency-key": key } });
  asked.end();
  const [response, socket, head] = (await once(asked, "upgrade")) as [IncomingMessage, Socket, Buffer];
  let text = head.toString();
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  await vi.waitFor(() => expect(text).toBe("hello"), { timeout: 60_000 });
  socket.destroy();
  return [response, text];
}

test.each([
  ["express", "ignored"],
  ["fastify", "ignored"],
  // The handler writes the head past Hono, so the middleware cannot add a header to it.
  ["hono", undefined],
])("in %s, an upgrade succeeds and uses up its key", { timeout: 120_000 }, async (name, mark) => {
  const handle = vi.fn(change);
  const site = await SITES[name]?.(handle);
  if (site === undefined) throw new Error("no such framework");
  try {
    const [{ statusCode, headers }] = await upgrade(site.url);
    expect([statusCode, headers.upgrade, headers["idempotency-status"]]).toEqual([101, "feed", mark]);
    const stored = onceKeyOf("POST", PATH, key);
    await vi.waitFor(async () => expect((await inspectOnce(holdfast, stored))?.state).toBe("bare"), {
      timeout: 60_000,
    });
    const again = await post(site.url, { path: "/feeds/7", key });
    expect([again.status, JSON.parse(again.text).type]).toEqual([409, "urn:holdfast:idempotency:result-unavailable"]);
    expect(handle).toHaveBeenCalledTimes(1);
  } finally {
    await site.close();
  }
});
