/** `@holdfast/http/fastify`: handles each request with an `Idempotency-Key` once, for Fastify 5. */
import type { IncomingMessage } from "node:http";
import type { OnceLease } from "@holdfast/recipes";
import type {
  FastifyRequest,
  preHandlerHookHandler,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerBase,
  RawServerDefault,
  RouteGenericInterface,
} from "fastify";
import type { Holdfast } from "holdfast";
import { Idempotency, leases } from "../exchange.js";
import type { NodeResponse } from "../node-answer.js";
import { seeThrough } from "../node-exchange.js";
import type { IdempotencyOptions } from "../options.js";
import { grouped } from "../problems.js";

export type { IdempotencyEvent, IdempotencyOutcome } from "../events.js";
export { onceKeyOf } from "../fingerprint.js";
export type { IdempotencyOptions } from "../options.js";

/**
 * Returns a `preHandler` hook for routes whose POST and PATCH requests must not be handled twice, for example
 * `app.post("/payments", { preHandler: idempotency(holdfast, options) }, handler)`. Requests with other methods pass
 * through.
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
export function idempotency<
  Server extends RawServerBase = RawServerDefault,
  Message extends RawRequestDefaultExpression<Server> = RawRequestDefaultExpression<Server>,
  Response extends RawReplyDefaultExpression<Server> = RawReplyDefaultExpression<Server>,
>(
  holdfast: Holdfast,
  options: IdempotencyOptions<FastifyRequest<RouteGenericInterface, Server, Message>> = {},
): preHandlerHookHandler<Server, Message, Response> {
  const shared = new Idempotency<FastifyRequest<RouteGenericInterface, Server, Message>>(holdfast, options);
  return (request, reply, done) => {
    if (!shared.concerns(request.method)) {
      done();
      return;
    }
    void seeThrough({
      ...{ shared, request, message: request.raw as IncomingMessage, response: reply.raw as unknown as NodeResponse },
      route: request.routeOptions.url ?? request.url.split("?", 1)[0] ?? "",
      target: request.originalUrl,
      parsed: () => request.body,
      next: (error) => done(error as Error | undefined),
      answer({ status, headers, body }) {
        const answer = reply.code(status).headers(grouped(headers));
        // Sends undefined for an empty body, because Fastify would add a content type to an empty buffer.
        void answer.send(body.length === 0 ? undefined : Buffer.from(body));
      },
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
