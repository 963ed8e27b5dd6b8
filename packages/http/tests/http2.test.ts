/** HTTP/2, where a request need not announce its body, and replays of repeated headers. */
import { once } from "node:events";
import { connect } from "node:http2";
import { fastify } from "fastify";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { idempotency } from "../src/fastify/index.js";
import { grouped } from "../src/problems.js";

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;

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

test("the same key with another body is refused even without a content-length", async () => {
  const app = fastify({ http2: true });
  app.post("/payments", { preHandler: idempotency(holdfast) }, async (request, reply) =>
    reply.code(201).send(request.body),
  );
  const session = connect(await app.listen({ port: 0, host: "127.0.0.1" }));
  const post = async (body: object): Promise<readonly [status: unknown, replayed: unknown]> => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/payments",
      "content-type": "application/json",
      "idempotency-key": '"one"',
    });
    stream.end(JSON.stringify(body));
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    stream.resume();
    await once(stream, "close");
    return [headers[":status"], headers["idempotency-replayed"]];
  };
  try {
    expect(await post({ amount: 10 })).toEqual([201, undefined]);
    expect(await post({ amount: 10 })).toEqual([201, "true"]);
    expect(await post({ amount: 9_999 })).toEqual([422, undefined]);
  } finally {
    session.close();
    await app.close();
  }
});

test("a repeated header keeps all of its values", () => {
  expect(
    grouped([
      ["link", "</a>"],
      ["etag", "x"],
      ["link", "</b>"],
    ]),
  ).toEqual({ link: ["</a>", "</b>"], etag: "x" });
});
