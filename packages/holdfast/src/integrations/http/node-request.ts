/** A request of `node:http`: its header lines, and its body wherever that is. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { BodyTooLarge } from "./exchange.js";
import { isJson, mediaTypeOf, type RequestBody } from "./fingerprint.js";

/** The lines of the header `Idempotency-Key`. */
export function keyHeaderOf({ headers, rawHeaders }: IncomingMessage): string[] {
  // Node joins several with a comma.
  const joined = headers["idempotency-key"];
  if (joined === undefined) return [];
  const lines = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "idempotency-key");
  return lines.length > 1 ? lines : [String(joined)];
}

/**
 * The body of a request, as its parser has left it; or, if nobody has read it, its bytes, which are put back for whoever reads it next.
 *
 * @param parsed  what the framework has as the body
 * @throws BodyTooLarge  nobody has read it, and it has more bytes than that
 * @throws Error  it was read, and is not there any more
 */
export async function bodyOf(request: IncomingMessage, parsed: unknown, bytesMax: number): Promise<RequestBody> {
  const { headers } = request;
  const mediaType = mediaTypeOf(headers["content-type"] ?? "");
  const length = headers["content-length"];
  // HTTP/2 need not say that there is a body.
  const isSilent = headers["transfer-encoding"] === undefined && (request.httpVersionMajor < 2 || length !== undefined);
  if (isSilent && Number(length ?? 0) === 0) return { kind: "none" };
  if (!request.readableDidRead && !request.readableEnded)
    return { kind: "bytes", bytes: await peek(request, bytesMax) };
  // The files of a form are not in what its parser leaves.
  const isNull = parsed === null && isJson(mediaType);
  if (!(isNull || isLeft(parsed)) || mediaType === "multipart/form-data") {
    throw new Error(
      `The body (${mediaType}) was read before idempotency(), and its content is no longer known; use a parser that stores it as the body of the request, or set the option fingerprint`,
    );
  }
  return parsed instanceof Uint8Array ? { kind: "bytes", bytes: parsed } : { kind: "value", value: parsed };
}

function isLeft(parsed: unknown): boolean {
  if (parsed === undefined || parsed === null) return false;
  return typeof parsed !== "object" || !("pipe" in parsed || "getReader" in parsed);
}

/** All of the body, which then is unread again. */
async function peek(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw new BodyTooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    for (let chunk = request.read(); chunk !== null; chunk = request.read()) {
      chunks.push(chunk);
      bytes += chunk.length;
    }
    if (bytes > bytesMax) {
      // Node drops the rest of a body by itself only if nothing of it was read; and behind the rest is the next request.
      request.resume();
      throw new BodyTooLarge();
    }
    if (request.complete) break;
    await readable(request);
  }
  const body = Buffer.concat(chunks);
  // In the same turn as the last read, before Node tells of the end.
  if (bytes > 0) request.unshift(body);
  return body;
}

async function readable(request: IncomingMessage): Promise<void> {
  const waiting = new AbortController();
  const { signal } = waiting;
  try {
    await Promise.race([once(request, "readable", { signal }), closed(request, signal)]);
  } finally {
    waiting.abort();
  }
}

async function closed(request: IncomingMessage, signal: AbortSignal): Promise<never> {
  if (!request.destroyed) await once(request, "close", { signal });
  throw new Error("the connection was closed before the whole request body arrived");
}
