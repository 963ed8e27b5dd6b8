/** Payments over HTTP that are made once, however often the customer presses the button: Express, Fastify and Hono. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { idempotency, leaseOf, onceKeyOf } from "@holdfast/http/express";
import { idempotency as forFastify } from "@holdfast/http/fastify";
import { idempotency as forHono } from "@holdfast/http/hono";
import { resolveOnce } from "@holdfast/recipes";
import { serve } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { createHoldfast } from "holdfast";
import { Hono } from "hono";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

let charges = 0;
async function charge(
  _payment: unknown,
  _options: { key?: string | undefined; signal?: AbortSignal | undefined } = {},
) {
  charges += 1;
  return { receipt: `r-${charges}` };
}

const app = express();
app.use(express.json());
app.post(
  "/payments",
  idempotency(holdfast, {
    required: true,
    scope: (request) => request.get("x-customer") ?? "nobody", // in production: the authenticated user, not a header
  }),
  async (request, response) => {
    const receipt = await charge(request.body, {
      key: request.get("idempotency-key"), // the provider's own idempotency closes the last gap
      signal: leaseOf(request)?.signal, // aborts before another caller may start
    });
    response.status(201).location(`/payments/${receipt.receipt}`).json(receipt);
  },
);

const fastifyApp = fastify();
fastifyApp.post("/payments", { preHandler: forFastify(holdfast) }, async (request, reply) =>
  reply.code(201).send(await charge(request.body)),
);

const honoApp = new Hono();
honoApp.post("/payments", forHono(holdfast), async (c) => c.json(await charge(await c.req.json()), 201));

const options = {
  leaseMs: 15_000, // a crashed process is replaced after that; a slow one is renewed
  maxHoldMs: 120_000, // a handler that never replies is replaced after that
  keepMs: 86_400_000, // for a day all callers get the first answer: tell your clients
  whenRunning: { waitMs: 5_000 }, // a repeated request waits for the first answer, and then gets 409
  // 504: it is unknown whether the bank has paid. The next try finds out for the others.
  keep: (status: number) =>
    status === 504 ? "block" : status < 500 && ![401, 403, 408, 409, 425, 429].includes(status),
};
const careful = express();
careful.use(express.json());
careful.post("/transfers/:account", idempotency(holdfast, options), (_request, response) => {
  response.status(504).end();
});

await fastifyApp.ready();
const servers: Server[] = [
  createServer(app),
  fastifyApp.server,
  serve({ fetch: honoApp.fetch, port: 0, hostname: "127.0.0.1" }) as Server,
  createServer(careful),
];
const urls = await Promise.all(
  servers.map(async (server) => {
    if (!server.listening) await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }),
);

async function press(
  url: string,
  key: string,
  amount: number,
): Promise<{ status: number; replayed: boolean; body: unknown }> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": `"${key}"` },
    body: JSON.stringify({ amount }),
  });
  const text = await response.text();
  const replayed = response.headers.get("idempotency-replayed") === "true";
  return { status: response.status, replayed, body: text === "" ? undefined : JSON.parse(text) };
}

for (const url of urls.slice(0, 3)) {
  const key = randomUUID();
  const before = charges;
  const first = await press(`${url}/payments`, key, 42);
  const again = await press(`${url}/payments`, key, 42);
  assert.deepEqual([first.status, first.replayed, again.status, again.replayed], [201, false, 201, true]);
  assert.deepEqual(again.body, first.body);
  assert.equal(charges, before + 1);
  const other = await press(`${url}/payments`, key, 43);
  assert.equal((other.body as { type: string }).type, "urn:holdfast:idempotency:mismatch");
}

const key = randomUUID();
const transfer = (): ReturnType<typeof press> => press(`${urls[3]}/transfers/7`, key, 42);
assert.equal((await transfer()).status, 504);
assert.equal(((await transfer()).body as { type: string }).type, "urn:holdfast:idempotency:blocked");

// The bank says that it was paid. Later attempts get this answer.
await resolveOnce(holdfast, onceKeyOf("POST", "/transfers/:account", key), {
  value: { status: 200, headers: { "content-type": "application/json" }, text: '{"booked":true}' },
});
assert.deepEqual((await transfer()).body, { booked: true });

for (const server of servers) {
  server.close();
  server.closeAllConnections();
}
await holdfast.close();
redis.disconnect();
