/** Reads the header lines and the body of a `node:http` request. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { BodyTooLarge } from "./exchange.js";
import { isJson, mediaTypeOf, type RequestBody } from "./fingerprint.js";

/** Returns the value of each line of the header `Idempotency-Key`. */
export function keyHeaderOf({ headers, rawHeaders }: IncomingMessage): string[] {
  // Node joins several lines with a comma, so only the raw headers show how many there are.
  const joined = headers["idempotency-key"];
  if (joined === undefined) return [];
  const lines = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "idempotency-key");
  return lines.length > 1 ? lines : [String(joined)];
}

/**
 * Returns the body of a request as its parser left it. If no parser has read it, reads its bytes and puts them back for
 * the next reader.
 *
 * @param parsed    the body as the framework has it
 * @param bytesMax  the maximum number of bytes to read
 * @throws BodyTooLarge  no parser has read the body, and it is larger than `bytesMax`
 * @throws Error  the body was already read and is no longer available, or the connection was closed before it arrived
 */
export async function bodyOf(request: IncomingMessage, parsed: unknown, bytesMax: number): Promise<RequestBody> {
  const { headers } = request;
  const mediaType = mediaTypeOf(headers["content-type"] ?? "");
  const length = headers["content-length"];
  // An HTTP/2 request can have a body without a header that announces it.
  const isSilent = headers["transfer-encoding"] === undefined && (request.httpVersionMajor < 2 || length !== undefined);
  if (isSilent && Number(length ?? 0) === 0) return { kind: "none" };
  if (!request.readableDidRead && !request.readableEnded)
    return { kind: "bytes", bytes: await peek(request, bytesMax) };
  // A parser for multipart forms does not leave the files in the body.
  const isNull = parsed === null && isJson(mediaType);
  if (!(isNull || isLeft(parsed)) || mediaType === "multipart/form-data") {
    throw new Error(
      mediaType === "multipart/form-data"
        ? "A multipart body was read before idempotency(), so it cannot be compared: put idempotency() before the parser, or set the option fingerprint"
        : "The body was read before idempotency() and not kept, so it cannot be compared: use a parser that stores it as the body of the request, or set the option fingerprint",
    );
  }
  return parsed instanceof Uint8Array ? { kind: "bytes", bytes: parsed } : { kind: "value", value: parsed };
}

function isLeft(parsed: unknown): boolean {
  if (parsed === undefined || parsed === null) return false;
  return typeof parsed !== "object" || !("pipe" in parsed || "getReader" in parsed);
}

/** Reads the whole body and puts it back, so that it is unread again. */
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
      // Discards the rest, because the next request follows it. Node itself does this only if none of the body was
      // read.
      request.resume();
      throw new BodyTooLarge();
    }
    if (request.complete) break;
    await readable(request);
  }
  const body = Buffer.concat(chunks);
  // Must run in the same turn as the last read, before Node emits `end`.
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
