/** Handles one `node:http` request from the middleware to its end. Express and Fastify share this code. */
import type { IncomingMessage } from "node:http";
import { type HttpRequest, type Idempotency, leases, type Mark } from "./exchange.js";
import { NodeAnswer, type NodeResponse } from "./node-answer.js";
import { bodyOf, keyHeaderOf } from "./node-request.js";
import type { Answer } from "./problems.js";

/** A request and its response, from a framework on `node:http`. */
export interface NodeExchange<Request> {
  readonly shared: Idempotency<Request>;
  /** The request object of the framework, which `leaseOf` uses to find the lease. */
  readonly request: Request & object;
  readonly message: IncomingMessage;
  readonly response: NodeResponse;
  readonly route: string;
  readonly target: string;
  /** Returns the body as the framework has it. */
  readonly parsed: () => unknown;
  /** Calls the next middleware or the handler. With an error, calls the error handler. */
  readonly next: (error?: unknown) => void;
  /** Sends a response instead of calling the handler. */
  readonly answer: (answer: Answer) => void;
}

/** Handles one request to its end. Never rejects: errors go to `next`. */
export async function seeThrough<Request>(exchange: NodeExchange<Request>): Promise<void> {
  const { shared, request, response, next } = exchange;
  const waiting = new AbortController();
  const stopWaiting = (): void => waiting.abort();
  response.once("close", stopWaiting);
  let taking: NodeAnswer | undefined;
  try {
    const verdict = await shared.carryOut(describe(exchange, waiting.signal), request, (lease) => {
      // From here on the handler runs to its end, even if the client disconnects.
      response.off("close", stopWaiting);
      leases.set(request, lease);
      taking = new NodeAnswer(response, shared.options.bodyBytesMax);
      next();
      return taking.taken;
    });
    if (verdict.kind === "send") taking?.release(verdict.mark);
    else if (verdict.kind === "answer") exchange.answer(verdict.answer);
    else if (verdict.kind === "pass") passOn(response, verdict.mark, next);
  } catch (error) {
    if (taking === undefined) next(error);
    // The captured response cannot be sent, and no other response can be sent instead.
    else response.destroy();
  } finally {
    response.off("close", stopWaiting);
  }
}

function passOn(response: NodeResponse, mark: Mark | undefined, next: () => void): void {
  if (mark !== undefined) response.setHeader("idempotency-status", mark);
  next();
}

function describe<Request>(
  { message, route, target, parsed }: NodeExchange<Request>,
  signal: AbortSignal,
): HttpRequest {
  const { headers } = message;
  return {
    method: message.method ?? "",
    route,
    target,
    keyHeader: keyHeaderOf(message),
    contentType: headers["content-type"] ?? "",
    acceptEncoding: String(headers["accept-encoding"] ?? ""),
    body: (bytesMax) => bodyOf(message, parsed(), bytesMax),
    signal,
  };
}
