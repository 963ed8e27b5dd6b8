/** `@holdfast/http/express`: handles each request with an `Idempotency-Key` once, for Express 4 and 5. */

import type { OnceLease } from "@holdfast/recipes";
import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Holdfast } from "holdfast";
import { Idempotency, leases } from "../exchange.js";
import type { NodeResponse } from "../node-answer.js";
import { seeThrough } from "../node-exchange.js";
import type { IdempotencyOptions } from "../options.js";
import { type Answer, grouped } from "../problems.js";

export type { IdempotencyEvent, IdempotencyOutcome } from "../events.js";
export { onceKeyOf } from "../fingerprint.js";
export type { IdempotencyOptions } from "../options.js";

/**
 * Returns middleware for routes whose POST and PATCH requests must not be handled twice. Requests with other methods
 * pass through. Put it after the body parser and the authentication, and before the handler, for example
 * `app.post("/payments", idempotency(holdfast, options), handler)`.
 *
 * The first request with a key goes to the handler. Its response is recorded and then sent. Later requests with the key
 * get the recorded response with `Idempotency-Replayed: true`. Refused requests get `application/problem+json`.
 *
 * The process may still crash after the handler has had an effect and before the response is recorded. So pass
 * `leaseOf(request)?.token` to the storage that you write to, or the key to the services that you call.
 *
 * @throws TypeError, RangeError  invalid argument
 * @throws UnsupportedError       the Holdfast uses several independent servers
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

/**
 * Returns the lease of a request that is being handled, with `signal`, `token`, `attempt` and `save`. Returns undefined
 * for a request without a key.
 */
export function leaseOf(request: object): OnceLease | undefined {
  return leases.get(request);
}

/** Returns the route pattern, or the path of the request if the middleware is not on a route. */
function routeOf({ route, baseUrl, originalUrl }: Request): string {
  const path: unknown = route?.path;
  return path === undefined ? (originalUrl.split("?", 1)[0] ?? "") : `${baseUrl}${String(path)}`;
}

/** Returns the parsed body. The parsers of Express 4 leave an empty object for a body that they do not read. */
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
