/**
 * Minimal JSON over node:http on loopback, for the services of this example.
 *
 * This module is independent of payments and locks.
 */
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as the services receive it. */
export interface JsonRequest {
  /** Method and path, e.g. `POST /payments`. */
  readonly route: string;
  readonly body: unknown;
  /** The `user-agent` header: the copy that sent the request. */
  readonly from: string;
}

/** A response, sent or received. */
export interface JsonAnswer {
  readonly status: number;
  readonly body: unknown;
  /** Seconds, as the `Retry-After` header. */
  readonly retryAfterSeconds?: number;
  /** Whether it is the recorded response to an earlier request: the `Idempotency-Replayed` header. */
  readonly isReplay?: boolean;
}

/** A listening service. `close` also ends open connections. */
export interface Service {
  readonly url: string;
  close(): Promise<void>;
}

const LONGEST_BODY_BYTES = 65_536;

/** Serves `handle` on a free port of 127.0.0.1. If it throws, the response is 500, and the error goes to stderr. */
export async function serveJson(handle: (request: JsonRequest) => Promise<JsonAnswer> | JsonAnswer): Promise<Service> {
  return await serve((request, response) => {
    void answer(request, handle).then(({ status, body, retryAfterSeconds }) => {
      const headers: Record<string, string> = { "content-type": "application/json" };
      if (retryAfterSeconds !== undefined) headers["retry-after"] = String(retryAfterSeconds);
      response.writeHead(status, headers).end(JSON.stringify(body));
    });
  });
}

/** Serves a listener on a free port of 127.0.0.1. */
export async function serve(listener: RequestListener): Promise<Service> {
  const server = createServer(listener);
  // Longer than a run, because a connection that the server closes just as it is reused looks like a crash.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo; // a TCP server that listens has one
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  request: IncomingMessage,
  handle: (request: JsonRequest) => Promise<JsonAnswer> | JsonAnswer,
): Promise<JsonAnswer> {
  let body: unknown;
  try {
    body = JSON.parse(await text(request));
  } catch (error) {
    return { status: 400, body: { error: `the body is not JSON: ${String(error)}` } };
  }
  try {
    const from = request.headers["user-agent"] ?? "";
    return await handle({ route: `${request.method} ${request.url}`, body, from });
  } catch (error) {
    console.error(error);
    return { status: 500, body: { error: "internal error" } };
  }
}

async function text(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LONGEST_BODY_BYTES) throw new RangeError(`longer than ${LONGEST_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Sends one POST and reads the response, for any status.
 *
 * @param options  `key` is sent as the Idempotency-Key
 * @throws the signal's reason  it was aborted; the request may have been carried out
 * @throws TypeError            no connection, or it broke; the request may have been carried out
 */
export async function postJson(
  url: string,
  body: unknown,
  options: { readonly from: string; readonly signal?: AbortSignal | undefined; readonly key?: string },
): Promise<JsonAnswer> {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-agent": options.from,
      ...(options.key === undefined ? {} : { "idempotency-key": `"${options.key}"` }),
    },
    body: JSON.stringify(body),
    signal: options.signal ?? null,
  });
  const retryAfter = response.headers.get("retry-after");
  return {
    status: response.status,
    body: await response.json(),
    isReplay: response.headers.get("idempotency-replayed") === "true",
    ...(retryAfter === null ? {} : { retryAfterSeconds: Number(retryAfter) }),
  };
}
