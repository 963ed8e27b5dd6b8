/** What a request is about, so that the same key for another one is noticed; and the key under which it is kept. */
import { createHash } from "node:crypto";
import { checkComparable } from "../../recipes/once/fingerprint.js";

/** The body of a request: none, its bytes, or what a parser has made of it. */
export type RequestBody =
  | { readonly kind: "none" }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "value"; readonly value: unknown };

/** What is compared. */
export interface RequestContent {
  readonly method: string;
  /** Path and query as they were sent. */
  readonly target: string;
  /** The header `Content-Type`; empty if there is none. */
  readonly contentType: string;
  readonly body: RequestBody;
}

/** The most bytes of a name of `once`. */
const NAME_BYTES_MAX = 255;

/**
 * Method, path, query, media type and body, as one short text. The order of a JSON object's properties does not matter, nor do the
 * parameters of the media type.
 */
export function fingerprintOfRequest({ method, target, contentType, body }: RequestContent): string {
  const mediaType = mediaTypeOf(contentType);
  return sha256(JSON.stringify([method, target, mediaType, bodyDigest(body, mediaType)]));
}

/** In lower case, without parameters. */
export function mediaTypeOf(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Whether that is JSON, as `mediaTypeOf` has it. */
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
      // Not JSON in spite of its type: what was sent is compared as it is.
    }
  }
  return sha256(body.bytes);
}

function digestOf(value: unknown): string {
  if (value instanceof Uint8Array) return sha256(value);
  checkComparable(value);
  return sha256(canonical(value));
}

/** JSON with the properties of each object in one order; what JSON has no word for becomes what `JSON.stringify` makes of it. */
function canonical(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    if ("toJSON" in value && typeof value.toJSON === "function") return canonical(value.toJSON());
    if (value instanceof Map) return `Map${canonical([...value])}`;
    if (value instanceof Set) return `Set${canonical([...value])}`;
    if (value instanceof Uint8Array) return `bytes:${sha256(value)}`;
    if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    // By code units, which no locale changes.
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(",")}}`;
  }
  return typeof value === "bigint" ? `${value}n` : (JSON.stringify(value) ?? "null");
}

/**
 * The key of `once` for a request: method, route and header, or their digest where that is too long for a key. For `inspectOnce` and
 * `resolveOnce`, with what the option `scope` gives as their scope.
 *
 * @param route  as the framework has it, such as `/payments/:id`
 * @param key    the header, without quotes
 */
export function onceKeyOf(method: string, route: string, key: string): string {
  return shortened(`${method} ${route} ${key}`);
}

/** A name of `once` that may come from anywhere. */
export function shortened(name: string): string {
  const isFit = Buffer.byteLength(name) <= NAME_BYTES_MAX && !/\p{Surrogate}/u.test(name);
  return isFit ? name : `sha256:${sha256(name)}`;
}

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
