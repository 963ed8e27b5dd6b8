/** One request on `node:http`, from the middleware to its end: what Express and Fastify share. */
import type { IncomingMessage } from "node:http";
import { type HttpRequest, type Idempotency, leases, type Mark } from "./exchange.js";
import { NodeAnswer, type NodeResponse } from "./node-answer.js";
import { bodyOf, keyHeaderOf } from "./node-request.js";
import type { Answer } from "./problems.js";

/** A request as a framework on `node:http` has it. */
export interface NodeExchange<Request> {
  readonly shared: Idempotency<Request>;
  /** What the framework calls the request; `leaseOf` finds its lease. */
  readonly request: Request & object;
  readonly message: IncomingMessage;
  readonly response: NodeResponse;
  readonly route: string;
  readonly target: string;
  /** What the framework has as the body. */
  readonly parsed: () => unknown;
  /** Calls what comes after the middleware; with an error, what handles errors. */
  readonly next: (error?: unknown) => void;
  readonly answer: (answer: Answer) => void;
}

/** Sees one request through. Never rejects. */
export async function seeThrough<Request>(exchange: NodeExchange<Request>): Promise<void> {
  const { shared, request, response, next } = exchange;
  const waiting = new AbortController();
  const stopWaiting = (): void => waiting.abort();
  response.once("close", stopWaiting);
  let taking: NodeAnswer | undefined;
  try {
    const verdict = await shared.carryOut(describe(exchange, waiting.signal), request, (lease) => {
      // From here on the handler goes on, whoever still waits for it.
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
    // What was taken cannot be sent, and nothing else can be.
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
