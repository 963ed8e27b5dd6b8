/** `@holdfast/http/hono`: handles each request with an `Idempotency-Key` once, for Hono 4 on Node. */

import type { OnceLease } from "@holdfast/recipes";
import type { Holdfast } from "holdfast";
import type { Context, MiddlewareHandler } from "hono";
import { BodyTooLarge, Idempotency, leases } from "../exchange.js";
import type { RequestBody } from "../fingerprint.js";
import type { IdempotencyOptions } from "../options.js";
import { WebAnswer } from "../web-answer.js";

export type { IdempotencyEvent, IdempotencyOutcome } from "../events.js";
export { onceKeyOf } from "../fingerprint.js";
export type { IdempotencyOptions } from "../options.js";

/**
 * Returns middleware for routes whose POST and PATCH requests must not be handled twice, for example
 * `app.post("/payments", idempotency(holdfast, options), handler)`. Requests with other methods pass through.
 *
 * The first request with a key goes to the handler. Its response is recorded and then sent. Later requests with the key
 * get the recorded response with `Idempotency-Replayed: true`. Refused requests get `application/problem+json`.
 *
 * The process may still crash after the handler has had an effect and before the response is recorded. So pass
 * `leaseOf(c)?.token` to the storage that you write to, or the key to the services that you call.
 *
 * @throws TypeError, RangeError  invalid argument
 * @throws UnsupportedError       the Holdfast uses several independent servers
 */
export function idempotency(holdfast: Holdfast, options: IdempotencyOptions<Context> = {}): MiddlewareHandler {
  const shared = new Idempotency<Context>(holdfast, options);
  return async (c, next) => {
    if (!shared.concerns(c.req.method)) return await next();
    let taking: WebAnswer | undefined;
    const verdict = await shared.carryOut(describe(c), c, async (lease) => {
      leases.set(c, lease);
      await next();
      taking = new WebAnswer(c.res, shared.options.bodyBytesMax);
      return await taking.taken;
    });
    switch (verdict.kind) {
      case "answer": {
        const { status, headers, body } = verdict.answer;
        return new Response(body.length === 0 ? null : Buffer.from(body), {
          status,
          headers: headers.map((pair) => [...pair]),
        });
      }
      case "pass":
        await next();
        if (verdict.mark !== undefined) c.header("idempotency-status", verdict.mark);
        return;
      case "send":
        // Clears the response first. Otherwise Hono would add the old headers to the new response.
        c.res = undefined;
        c.res = taking?.release(verdict.mark);
        return;
      case "gone":
        return c.body(null, 499 as 400);
    }
  };
}

/**
 * Returns the lease of a request that is being handled, with `signal`, `token`, `attempt` and `save`. Returns undefined
 * for a request without a key.
 */
export function leaseOf(c: object): OnceLease | undefined {
  return leases.get(c);
}

function describe(c: Context): Parameters<Idempotency<Context>["carryOut"]>[0] {
  const { pathname, search } = new URL(c.req.url);
  const key = c.req.header("idempotency-key");
  return {
    method: c.req.method,
    route: routeOf(c) ?? pathname,
    target: pathname + search,
    keyHeader: key === undefined ? [] : [key],
    contentType: c.req.header("content-type") ?? "",
    acceptEncoding: c.req.header("accept-encoding") ?? "",
    body: (bytesMax) => bodyOf(c, bytesMax),
    signal: c.req.raw.signal,
  };
}

/**
 * Returns the pattern of the route that the middleware is on. If that pattern matches many routes, returns the pattern
 * of the handler. Other matches, such as a catch-all handler, do not identify the request.
 */
function routeOf({ req: { matchedRoutes, routeIndex, method } }: Context): string | undefined {
  const isOfOne = ({ path }: { readonly path: string }): boolean => !path.includes("*");
  const own = matchedRoutes[routeIndex];
  if (own !== undefined && isOfOne(own)) return own.path;
  const handlers = matchedRoutes.filter((each) => each.method === method);
  // A handler for all methods cannot be distinguished from middleware. The last match may be such a handler.
  return (handlers.find(isOfOne) ?? matchedRoutes.findLast(isOfOne) ?? handlers.at(-1) ?? matchedRoutes.at(-1))?.path;
}

/**
 * Parsed bodies that can be turned back into the same bytes. A form cannot, because it gets a new boundary each time.
 */
const CACHED = ["text", "arrayBuffer", "blob", "json"] as const;

async function bodyOf(c: Context, bytesMax: number): Promise<RequestBody> {
  const { raw, bodyCache } = c.req;
  if (CACHED.some((kind) => bodyCache[kind] !== undefined)) return bytes(await c.req.arrayBuffer());
  if (!raw.bodyUsed) return await peek(raw, bytesMax);
  throw new Error(
    "The body was read before idempotency() and not kept, so it cannot be compared: read it with c.req.json() or c.req.text(), or set the option fingerprint",
  );
}

/** Reads the whole body from a clone, so that others can still read it. @throws BodyTooLarge  larger than `bytesMax` */
async function peek(raw: Request, bytesMax: number): Promise<RequestBody> {
  if (Number(raw.headers.get("content-length") ?? 0) > bytesMax) throw new BodyTooLarge();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = raw.clone().body?.getReader();
  for (;;) {
    const { done = true, value } = (await reader?.read()) ?? {};
    if (done || value === undefined) break;
    length += value.length;
    if (length > bytesMax) {
      // Not awaited, because canceling one branch of a cloned body settles only when the other branch is canceled too.
      void reader?.cancel().catch(() => {});
      throw new BodyTooLarge();
    }
    chunks.push(value);
  }
  return length === 0 ? { kind: "none" } : { kind: "bytes", bytes: Buffer.concat(chunks) };
}

function bytes(buffer: ArrayBuffer): RequestBody {
  return buffer.byteLength === 0 ? { kind: "none" } : { kind: "bytes", bytes: new Uint8Array(buffer) };
}
