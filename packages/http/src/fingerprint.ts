/**
 * The fingerprint of a request, which detects a different request with the same key, and the key under which the
 * request is stored.
 */
import { createHash } from "node:crypto";
import { checkComparable } from "@holdfast/recipes/internal";

/** The body of a request: none, its bytes, or the result of a parser. */
export type RequestBody =
  | { readonly kind: "none" }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "value"; readonly value: unknown };

/** The parts of a request that the fingerprint covers. */
export interface RequestContent {
  readonly method: string;
  /** Path and query as the client sent them. */
  readonly target: string;
  /** The header `Content-Type`; empty if there is none. */
  readonly contentType: string;
  readonly body: RequestBody;
}

/** The maximum size of a key or scope of `once`, in bytes. */
const NAME_BYTES_MAX = 255;

/**
 * Returns a digest of the method, path, query, media type and body. It ignores the order of properties in JSON objects
 * and the parameters of the media type.
 */
export function fingerprintOfRequest({ method, target, contentType, body }: RequestContent): string {
  const mediaType = mediaTypeOf(contentType);
  return sha256(JSON.stringify([method, target, mediaType, bodyDigest(body, mediaType)]));
}

/** Returns the media type of a `Content-Type` header, in lower case and without parameters. */
export function mediaTypeOf(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Whether a media type is JSON. @param mediaType  as returned by `mediaTypeOf` */
export function isJson(mediaType: string): boolean {
  return /^application\/(.+\+)?json$/.test(mediaType);
}

function bodyDigest(body: RequestBody, mediaType: string): string {
  if (body.kind === "none") return "";
  if (body.kind === "value") return digestOf(body.value);
  if (isJson(mediaType)) {
    try {
      return digestOf(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body.bytes)));
    } catch {
      // The body is not JSON although its type says so, so the fingerprint uses its bytes.
    }
  }
  return sha256(body.bytes);
}

function digestOf(value: unknown): string {
  if (value instanceof Uint8Array) return sha256(value);
  checkComparable(value);
  return sha256(canonical(value));
}

/**
 * Returns JSON in which the properties of each object are sorted. Maps, sets, bytes and bigints have their own
 * notations. Any other value that JSON cannot express is written as `JSON.stringify` writes it.
 */
function canonical(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    if ("toJSON" in value && typeof value.toJSON === "function") return canonical(value.toJSON());
    if (value instanceof Map) return `Map${canonical([...value])}`;
    if (value instanceof Set) return `Set${canonical([...value])}`;
    if (value instanceof Uint8Array) return `bytes:${sha256(value)}`;
    if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    // Compares code units because their order does not depend on the locale.
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(",")}}`;
  }
  return typeof value === "bigint" ? `${value}n` : (JSON.stringify(value) ?? "null");
}

/**
 * Returns the key of `once` for a request: method, route and header, or their digest if that is too long for a key. Use
 * it with `inspectOnce` and `resolveOnce`. Their scope is what the option `scope` returns.
 *
 * @param route  the route pattern of the framework, such as `/payments/:id`
 * @param key    the value of the header, without quotes
 */
export function onceKeyOf(method: string, route: string, key: string): string {
  return shortened(`${method} ${route} ${key}`);
}

/**
 * Returns a valid key or scope of `once` for any text: the text itself, or its digest if it is too long or malformed.
 */
export function shortened(name: string): string {
  const isFit = Buffer.byteLength(name) <= NAME_BYTES_MAX && !/\p{Surrogate}/u.test(name);
  return isFit ? name : `sha256:${sha256(name)}`;
}

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
