import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type HttpBindings, serve } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import express from "express";
import { fastify } from "fastify";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import { type ConsoleHandler, createConsole } from "../src/create-console.js";
import type { ConsoleRequest } from "../src/exchange.js";
import { readEvents } from "./event-reader.js";
import { redisScene, settings, TOKEN, talkingTo } from "./scene.js";

const redis = redisScene();
const BASE = "/ops/locks";

interface Mounted {
  readonly port: number;
  close(): Promise<unknown>;
}

/** Every way to mount the console that the documentation shows. */
const frameworks: readonly (readonly [name: string, mount: (handler: ConsoleHandler) => Promise<Mounted>])[] = [
  [
    "bare node:http",
    async (handler) => {
      const server = createServer((req, res) => {
        if (req.url?.startsWith(BASE) === true) return handler(req, res);
        res.end("the application");
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return {
        port: (server.address() as AddressInfo).port,
        close: () => ended(server),
      };
    },
  ],
  [
    "express",
    async (handler) => {
      const app = express();
      app.use(BASE, handler);
      app.use((_req, res) => void res.end("the application"));
      return listening(app);
    },
  ],
  [
    "express that has parsed the body and put CORS headers on",
    async (handler) => {
      const app = express();
      app.use(express.json(), (_req, res, next) => {
        res.setHeader("Access-Control-Allow-Origin", "*");
        next();
      });
      app.use(BASE, handler);
      app.use((_req, res) => void res.end("the application"));
      return listening(app);
    },
  ],
  [
    "fastify",
    async (handler) => {
      const app = fastify({ forceCloseConnections: true });
      const mounted = (
        request: { raw: IncomingMessage; body: unknown },
        reply: { raw: ServerResponse; hijack(): unknown },
      ) => {
        reply.hijack();
        handler(Object.assign(request.raw, { body: request.body }), reply.raw);
      };
      app.all(BASE, mounted);
      app.all(`${BASE}/*`, mounted);
      app.get("/", async () => "the application");
      await app.listen({ port: 0, host: "127.0.0.1" });
      return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
    },
  ],
  [
    "hono on node",
    async (handler) => {
      const app = new Hono<{ Bindings: HttpBindings }>();
      const mounted = (env: HttpBindings): Response => {
        handler(env.incoming as IncomingMessage, env.outgoing as ServerResponse);
        return RESPONSE_ALREADY_SENT;
      };
      app.all(BASE, ({ env }) => mounted(env));
      app.all(`${BASE}/*`, ({ env }) => mounted(env));
      app.get("/", (context) => context.text("the application"));
      const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
      await once(server, "listening");
      const close = async (): Promise<void> => {
        if ("closeAllConnections" in server) server.closeAllConnections();
        server.close();
      };
      return { port: (server.address() as AddressInfo).port, close };
    },
  ],
];

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

describe.each(frameworks)("mounted in %s", (_name, mount) => {
  async function mounted(): Promise<{ port: number; audit: unknown[] }> {
    const audit: never[] = [];
    const handler = createConsole({
      ...settings(audit),
      ...{ holdfast: redis.holdfast, basePath: BASE, token: TOKEN, allow: ["pause", "resume"] },
    });
    const { port, close } = await mount(handler);
    closers.push(
      () => handler.close(),
      () => close(),
    );
    return { port, audit };
  }

  it("serves pages, API and stream below the base path, and leaves other paths to the application", async () => {
    const { port } = await mounted();
    const site = talkingTo(port, BASE);
    expect((await talkingTo(port).ask("")).text).toBe("the application");
    const bare = await talkingTo(port).ask(BASE.slice(1));
    expect([bare.status, bare.headers.location]).toEqual([308, "locks/"]);
    expect((await site.ask("")).text).toContain("<title>pages</title>");
    expect((await site.ask("assets/index-abc123.js")).status).toBe(200);
    const { status, headers } = await site.get("api/locks");
    expect(status).toBe(200);
    expect(headers["access-control-allow-origin"]).toBeUndefined();
    expect(headers["x-powered-by"]).toBeUndefined();
    const stream = await readEvents(port, `${BASE}/api/events?topics=locks`, { authorization: `Bearer ${TOKEN}` });
    await stream.next("state", ({ locks }) => locks !== null);
    stream.close();
  });

  it("limits its cookie to the base path, and accepts actions even if the framework has parsed the body", async () => {
    const { port, audit } = await mounted();
    const page = await talkingTo(port, BASE).signIn("ana");
    const paused = await page.post("api/actions/pause", {
      kind: "mutex",
      name: "mounted",
      reason: "try it",
      untilAtMs: null,
    });
    expect(paused.status).toBe(200);
    const { id } = paused.json.lock.row.pause;
    const resumed = await page.post("api/actions/resume", {
      kind: "mutex",
      name: "mounted",
      reason: "tried",
      pauseId: id,
    });
    expect(resumed.status).toBe(200);
    expect(audit).toMatchObject([
      { who: "ana", action: "pause" },
      { who: "ana", action: "resume" },
    ]);
    const headers = { origin: `http://127.0.0.1:${port}`, "content-type": "application/json" };
    const login = await talkingTo(port, BASE).ask("api/login", { method: "POST", headers, body: { token: TOKEN } });
    expect(String(login.headers["set-cookie"])).toContain(`Path=${BASE}/;`);
  });
});

describe("an application that knows its users", () => {
  it("decides which locks each user sees and which actions they may take; other locks are not revealed", async () => {
    const authorize = (req: ConsoleRequest, action: string, name: string | undefined) => {
      const tenant = String(req.headers["x-tenant"] ?? "");
      if (tenant === "") return false;
      const isOwn = name === undefined || name.startsWith(`${tenant}:`);
      return isOwn && (action === "view" || tenant === "blue") ? { who: `${tenant}@example` } : false;
    };
    const audit: { who: string; outcome: string }[] = [];
    const handler = createConsole({
      ...settings(audit as never),
      holdfast: redis.holdfast,
      authorize,
      allow: ["pause", "resume"],
    });
    const { port, close } = await listening(express().use(handler));
    closers.push(
      () => handler.close(),
      () => close(),
    );
    const red = redis.another({ clientName: "red-worker" });
    const leases = [await redis.holdfast.mutex("blue:a").acquire(), await red.mutex("red:secret").acquire()];
    const site = talkingTo(port);
    expect((await site.ask("api/locks")).status).toBe(403);
    const blue = { "x-tenant": "blue" };
    const names = (await site.ask("api/locks", { headers: blue })).json.rows.map(({ name }: { name: string }) => name);
    expect(names).toEqual(["blue:a"]);
    for (const path of [
      "api/locks",
      "api/clients",
      "api/semaphores",
      "api/elections",
      "api/history",
      "api/history.csv",
      "api/lock?kind=mutex&name=red%3Asecret",
    ]) {
      expect((await site.ask(path, { headers: blue })).text).not.toMatch(/red:secret|red-worker/);
    }
    expect((await site.ask("api/lock?kind=mutex&name=red%3Asecret", { headers: blue })).status).toBe(403);
    const stream = await readEvents(port, "/api/events?topics=locks,clients", blue);
    await stream.next("state", ({ locks }) => locks !== null);
    await leases[1]?.release();
    const more = await redis.holdfast.mutex("blue:b").acquire();
    await stream.next("change", ({ locks }) => locks?.changed.some(({ name }: { name: string }) => name === "blue:b"));
    expect(stream.raw()).not.toMatch(/red:secret|red-worker/);
    stream.close();

    const { csrf } = (await site.ask("api/session", { headers: blue })).json;
    const headers = { ...blue, origin: site.origin, "x-holdfast-csrf": csrf, "content-type": "application/json" };
    const pause = (name: string, more: Record<string, string> = {}) =>
      site.ask("api/actions/pause", {
        method: "POST",
        headers: { ...headers, ...more },
        body: { kind: "mutex", name, reason: "x", untilAtMs: null },
      });
    expect((await pause("red:secret")).status).toBe(403);
    expect((await pause("blue:a", { origin: "http://evil.example" })).status).toBe(403);
    expect((await pause("blue:a", { "x-holdfast-csrf": "" })).status).toBe(403);
    expect((await pause("blue:a")).status).toBe(200);
    expect(audit.map(({ who, outcome }) => `${who} ${outcome}`)).toEqual([
      "blue@example forbidden",
      "blue@example done",
    ]);
    await redis.holdfast.resume("blue:a", { by: "test" });
    await leases[0]?.release();
    await more.release();
  });
});

async function ended(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
}

async function listening(app: express.Express): Promise<Mounted> {
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: () => ended(server),
  };
}
