// @ts-check
/** A service in its own process, on any of the frameworks. Records every run of its handler in Redis. */
import { createServer } from "node:http";
import { createRequire } from "node:module";
import * as forExpress from "@holdfast/http/express";
import * as forFastify from "@holdfast/http/fastify";
import * as forHono from "@holdfast/http/hono";
import { serve as serveHono } from "@hono/node-server";
import express5 from "express";
import fastify from "fastify";
import { createHoldfast } from "holdfast";
import { Hono } from "hono";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
// Many concurrent requests take long on a slow machine.
const holdfast = createHoldfast({ redis, commandTimeoutMs: 30_000 });
const { leaseMs, workMs, mark } = args;

/** @type {() => void} */
let finish = () => {};
const finished = new Promise((resolve) => {
  finish = () => resolve(undefined);
});

/** @param {string} key @param {import("@holdfast/recipes").OnceLease | undefined} lease */
async function pay(key, lease) {
  await redis.rpush(`runs:${key}`, `${mark} ${lease?.attempt} ${lease?.token}`);
  await tell("began");
  await (workMs === undefined ? finished : new Promise((resolve) => setTimeout(resolve, workMs)));
  return { by: mark, attempt: lease?.attempt };
}

/** @param {typeof express5} express */
function onExpress(express) {
  const app = express();
  app.use(express.json());
  app.post("/payments/:id", forExpress.idempotency(holdfast, { leaseMs }), (request, response, next) => {
    pay(request.get("idempotency-key") ?? "", forExpress.leaseOf(request)).then((paid) => response.json(paid), next);
  });
  return createServer(app);
}

async function onFastify() {
  const app = fastify();
  const preHandler = forFastify.idempotency(holdfast, { leaseMs });
  app.post("/payments/:id", { preHandler }, async (request) =>
    pay(String(request.headers["idempotency-key"]), forFastify.leaseOf(request)),
  );
  await app.ready();
  return app.server;
}

async function onHono() {
  const app = new Hono();
  app.post("/payments/:id", forHono.idempotency(holdfast, { leaseMs }), async (c) =>
    c.json(await pay(c.req.header("idempotency-key") ?? "", forHono.leaseOf(c))),
  );
  return serveHono({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
}

/** @type {Record<string, () => any>} */
const frameworks = {
  "express 5": () => onExpress(express5),
  "express 4": () => onExpress(createRequire(import.meta.url)("express4")),
  "fastify 5": onFastify,
  "hono 4": onHono,
};

serve({
  finish: () => finish(),

  async listen() {
    const server = await frameworks[args.framework]?.();
    if (!server.listening) await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
    return { url: `http://127.0.0.1:${server.address().port}` };
  },
});
