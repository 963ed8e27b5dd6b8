/** `holdfast/hono`: a request with an `Idempotency-Key` is carried out once, with Hono 4 on Node. */
import type { Context, MiddlewareHandler } from "hono";
import type { Holdfast } from "../../index.js";
import type { OnceLease } from "../../recipes/index.js";
import { BodyTooLarge, Idempotency, leases } from "../http/exchange.js";
import type { RequestBody } from "../http/fingerprint.js";
import type { IdempotencyOptions } from "../http/options.js";
import { WebAnswer } from "../http/web-answer.js";

export type { IdempotencyEvent, IdempotencyOutcome } from "../http/events.js";
export { onceKeyOf } from "../http/fingerprint.js";
export type { IdempotencyOptions } from "../http/options.js";

/**
 * Middleware for the routes of POST and PATCH requests that must not be carried out twice; other methods pass:
 * `app.post("/payments", idempotency(holdfast, options), handler)`.
 *
 * The first request with a key is handled, its answer is recorded, and then sent; later ones get the recorded answer, with
 * `Idempotency-Replayed: true`. What else may happen is told as `application/problem+json`. The process may still die between an effect
 * and the record: give `leaseOf(c)?.token` to what is written, or the key to whatever is called.
 *
 * @throws TypeError, RangeError  a wrong argument
 * @throws UnsupportedError       the Holdfast is on several independent servers
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
        // Otherwise Hono would add the headers of the one that is replaced.
        c.res = undefined;
        c.res = taking?.release(verdict.mark);
        return;
      case "gone":
        return c.body(null, 499 as 400);
    }
  };
}

/** The lease of a request that is being carried out: its `signal`, `token`, `attempt` and `save`. Undefined for one without a key. */
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
 * The pattern of the route on which the middleware stands; where that is of many routes, that of the handler. What else matches, such as
 * an answer to whatever nobody has handled, says nothing of the request.
 */
function routeOf({ req: { matchedRoutes, routeIndex, method } }: Context): string | undefined {
  const isOfOne = ({ path }: { readonly path: string }): boolean => !path.includes("*");
  const own = matchedRoutes[routeIndex];
  if (own !== undefined && isOfOne(own)) return own.path;
  const handlers = matchedRoutes.filter((each) => each.method === method);
  // A handler of all methods is not told from middleware, of which the last one that matches may be the handler.
  return (handlers.find(isOfOne) ?? matchedRoutes.findLast(isOfOne) ?? handlers.at(-1) ?? matchedRoutes.at(-1))?.path;
}

/** What can be made bytes again that are the same for the same body; a form has a new boundary each time. */
const CACHED = ["text", "arrayBuffer", "blob", "json"] as const;

async function bodyOf(c: Context, bytesMax: number): Promise<RequestBody> {
  const { raw, bodyCache } = c.req;
  if (CACHED.some((kind) => bodyCache[kind] !== undefined)) return bytes(await c.req.arrayBuffer());
  if (!raw.bodyUsed) return await peek(raw, bytesMax);
  throw new Error(
    "The body was read before idempotency(), and its content is no longer known; read it with c.req.json() or c.req.text(), or set the option fingerprint",
  );
}

/** All of the body, which others may read all the same. */
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
      // Not awaited: of a stream that two read, that ends only when both have left.
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
