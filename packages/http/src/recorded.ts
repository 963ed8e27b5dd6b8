/** How a response is stored and replayed. */
import { isUtf8 } from "node:buffer";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import type { Codec } from "@holdfast/recipes";
import type { Answer } from "./problems.js";

/** The response of a handler: a whole response, or one that passes through and is not kept. */
export type Taken =
  | { readonly kind: "whole"; readonly answer: Answer }
  | { readonly kind: "passing"; readonly status: number };

/** Room for the headers and the JSON around them. */
const HEADERS_BYTES_MAX = 65_536;

/**
 * Returns the maximum size of a stored response in bytes.
 *
 * @param bodyBytesMax  the maximum size of its body, in bytes
 */
export function textBytesMax(bodyBytesMax: number): number {
  return Math.ceil(bodyBytesMax / 3) * 4 + HEADERS_BYTES_MAX;
}

/**
 * Returns a codec that stores responses as readable JSON: `{ status, headers, text }`, or `base64` if the body is not
 * text. `encode` throws for a response that passes through, so that `once` records the call as done without a value.
 *
 * @param headers  the names of the headers to store, in lower case
 */
export function answerCodec(headers: readonly string[]): Codec {
  return {
    encode(value) {
      const taken = value as Taken;
      if (taken.kind !== "whole") throw new TypeError("a response that is passed on is not kept");
      const { answer } = taken;
      const kept = answer.headers.filter(([name]) => headers.includes(name));
      const bytes = Buffer.from(answer.body.buffer, answer.body.byteOffset, answer.body.byteLength);
      return JSON.stringify({ status: answer.status, headers: kept, ...bodyAsText(bytes) });
    },
    decode: (text) => decoded(JSON.parse(text)),
  };
}

function bodyAsText(bytes: Buffer): { text: string } | { base64: string } {
  const base64 = bytes.toString("base64");
  if (!isUtf8(bytes)) return { base64 };
  const text = bytes.toString("utf8");
  // JSON escapes make control characters six times as long, so base64 may be shorter.
  return Buffer.byteLength(JSON.stringify(text)) <= base64.length + 2 ? { text } : { base64 };
}

/** Returns undefined if the value is not a response. `resolveOnce` can store any value for a blocked call. */
function decoded(kept: unknown): Taken | undefined {
  if (typeof kept !== "object" || kept === null) return undefined;
  const { status, headers = [], text, base64 } = kept as Readonly<Record<string, unknown>>;
  if (!Number.isInteger(status) || Number(status) < 200 || Number(status) > 599) return undefined;
  const pairs = Array.isArray(headers) ? headers : Object.entries(headers as object);
  const body = typeof base64 === "string" ? Buffer.from(base64, "base64") : Buffer.from(String(text ?? ""));
  return {
    kind: "whole",
    answer: {
      status: Number(status),
      headers: pairs.map(([name, value]: [unknown, unknown]) => [String(name).toLowerCase(), String(value)] as const),
      body,
    },
  };
}

/**
 * Returns a stored response as it is replayed, marked with `idempotency-replayed`.
 *
 * @param acceptEncoding  the header `Accept-Encoding` of the client that gets the response
 */
export function replayAnswer(answer: Answer, acceptEncoding: string): Answer {
  const { status, headers, body } = readable(answer, acceptEncoding);
  return { status, headers: [...headers, ["idempotency-replayed", "true"]], body };
}

/**
 * Decompresses the body if the client does not accept its encoding. The first request may have accepted a different
 * encoding.
 */
function readable(answer: Answer, acceptEncoding: string): Answer {
  const encoding = answer.headers.find(([name]) => name === "content-encoding")?.[1].toLowerCase();
  const decompress = encoding === undefined ? undefined : DECOMPRESS[encoding];
  if (encoding === undefined || decompress === undefined || isAccepted(encoding, acceptEncoding)) return answer;
  const headers = answer.headers.filter(([name]) => name !== "content-encoding" && name !== "etag");
  return { status: answer.status, headers, body: decompress(answer.body) };
}

const DECOMPRESS: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  gzip: gunzipSync,
  "x-gzip": gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
};

function isAccepted(encoding: string, acceptEncoding: string): boolean {
  const offers = acceptEncoding.toLowerCase().split(",");
  const matching = (name: string): string | undefined => offers.find((each) => each.split(";", 1)[0]?.trim() === name);
  const offer = matching(encoding) ?? matching("*");
  return offer !== undefined && !/;\s*q=0(\.0*)?\s*$/.test(offer);
}
