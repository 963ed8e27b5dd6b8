/** `holdfast/express`: a request with an `Idempotency-Key` is carried out once, with Express 4 and 5. */
import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Holdfast } from "../../index.js";
import type { OnceLease } from "../../recipes/index.js";
import { Idempotency, leases } from "../http/exchange.js";
import type { NodeResponse } from "../http/node-answer.js";
import { seeThrough } from "../http/node-exchange.js";
import type { IdempotencyOptions } from "../http/options.js";
import { type Answer, grouped } from "../http/problems.js";

export type { IdempotencyEvent, IdempotencyOutcome } from "../http/events.js";
export { onceKeyOf } from "../http/fingerprint.js";
export type { IdempotencyOptions } from "../http/options.js";

/**
 * Middleware for the routes of POST and PATCH requests that must not be carried out twice; other methods pass. It belongs behind what
 * parses the body and says who the user is, and before the handler: `app.post("/payments", idempotency(holdfast, options), handler)`.
 *
 * The first request with a key is handled, its answer is recorded, and then sent; later ones get the recorded answer, with
 * `Idempotency-Replayed: true`. What else may happen is told as `application/problem+json`. The process may still die between an effect
 * and the record: give `leaseOf(request)?.token` to what is written, or the key to whatever is called.
 *
 * @throws TypeError, RangeError  a wrong argument
 * @throws UnsupportedError       the Holdfast is on several independent servers
 */
export function idempotency(holdfast: Holdfast, options: IdempotencyOptions<Request> = {}): RequestHandler {
  const shared = new Idempotency<Request>(holdfast, options);
  return (request: Request, response: Response, next: NextFunction) => {
    if (!shared.concerns(request.method)) {
      next();
      return;
    }
    void seeThrough({
      ...{ shared, request, message: request, response, next },
      route: routeOf(request),
      target: request.originalUrl,
      parsed: () => parsedBody(request),
      answer: (answer) => send(response, answer),
    });
  };
}

/** The lease of a request that is being carried out: its `signal`, `token`, `attempt` and `save`. Undefined for one without a key. */
export function leaseOf(request: object): OnceLease | undefined {
  return leases.get(request);
}

/** Where the middleware is not on a route, the path is as much as is known. */
function routeOf({ route, baseUrl, originalUrl }: Request): string {
  const path: unknown = route?.path;
  return path === undefined ? (originalUrl.split("?", 1)[0] ?? "") : `${baseUrl}${String(path)}`;
}

/** The parsers of Express 4 leave an empty object for what they do not read, those of Express 5 nothing. */
function parsedBody(request: Request): unknown {
  const { body, _body: isRead, param } = request as Request & { _body?: boolean; param?: unknown };
  const isExpress4 = typeof param === "function";
  const isEmpty = typeof body === "object" && body !== null && Object.keys(body).length === 0;
  return isExpress4 && isEmpty && isRead !== true ? undefined : body;
}

function send(response: NodeResponse, { status, headers, body }: Answer): void {
  response.statusCode = status;
  for (const [name, values] of Object.entries(grouped(headers))) response.setHeader(name, values);
  response.end(body);
}
