/** `holdfast/fastify`: a request with an `Idempotency-Key` is carried out once, with Fastify 5. */
import type { IncomingMessage } from "node:http";
import type {
  FastifyRequest,
  preHandlerHookHandler,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerBase,
  RawServerDefault,
  RouteGenericInterface,
} from "fastify";
import type { Holdfast } from "../../index.js";
import type { OnceLease } from "../../recipes/index.js";
import { Idempotency, leases } from "../http/exchange.js";
import type { NodeResponse } from "../http/node-answer.js";
import { seeThrough } from "../http/node-exchange.js";
import type { IdempotencyOptions } from "../http/options.js";
import { grouped } from "../http/problems.js";

export type { IdempotencyEvent, IdempotencyOutcome } from "../http/events.js";
export { onceKeyOf } from "../http/fingerprint.js";
export type { IdempotencyOptions } from "../http/options.js";

/**
 * A `preHandler` hook for the routes of POST and PATCH requests that must not be carried out twice; other methods pass:
 * `app.post("/payments", { preHandler: idempotency(holdfast, options) }, handler)`.
 *
 * The first request with a key is handled, its answer is recorded, and then sent; later ones get the recorded answer, with
 * `Idempotency-Replayed: true`. What else may happen is told as `application/problem+json`. The process may still die between an effect
 * and the record: give `leaseOf(request)?.token` to what is written, or the key to whatever is called.
 *
 * @throws TypeError, RangeError  a wrong argument
 * @throws UnsupportedError       the Holdfast is on several independent servers
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
        // Fastify gives a body without a type one.
        void answer.send(body.length === 0 ? undefined : Buffer.from(body));
      },
    });
  };
}

/** The lease of a request that is being carried out: its `signal`, `token`, `attempt` and `save`. Undefined for one without a key. */
export function leaseOf(request: object): OnceLease | undefined {
  return leases.get(request);
}
