/** One request and its answer, as the rest of the console sees them: below the base path, and the same in every framework. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import { badRequest, HttpProblem } from "./problem.js";

/** A request, with what a framework may have put on it. */
export type ConsoleRequest = IncomingMessage & {
  /** The path before a framework took its mount point off (Express, Connect, Nest). */
  readonly originalUrl?: string;
  /** A body that was read and parsed already. */
  readonly body?: unknown;
};

/** See the file header. */
export interface Exchange {
  readonly req: ConsoleRequest;
  readonly res: ServerResponse;
  /** GET for a HEAD too: node leaves the body out. */
  readonly method: string;
  /** Below the base path, without the first slash, as it was sent: `api/locks`. Undefined if the last slash of the base is missing. */
  readonly path: string | undefined;
  readonly query: URLSearchParams;
  /** Of the socket. A proxy's word about whom it speaks for is not believed. */
  readonly address: string;
  /** Whether the browser speaks https, to us or to a proxy before us. */
  readonly isSecure: boolean;
}

/** Reads what the request is for. */
export function exchangeOf(req: ConsoleRequest, res: ServerResponse, basePath: string): Exchange {
  const [pathname, search] = split(pathOf(req, basePath));
  return {
    req,
    res,
    method: req.method === "HEAD" ? "GET" : (req.method ?? "GET"),
    path: pathname === "" ? undefined : pathname.replace(/^\//, ""),
    query: new URLSearchParams(search),
    address: req.socket.remoteAddress ?? "unknown",
    isSecure: isEncrypted(req) || forwardedAs(req) === "https",
  };
}

/** Whether the connection to us is encrypted. */
export function isEncrypted(req: IncomingMessage): boolean {
  return (req.socket as Partial<TLSSocket>).encrypted === true;
}

/** What a proxy says that the browser spoke. Only ever believed where it makes us stricter. */
function forwardedAs(req: IncomingMessage): string | undefined {
  const header = req.headers["x-forwarded-proto"];
  return String(header ?? "")
    .split(",")[0]
    ?.trim()
    .toLowerCase();
}

/** A framework that mounts takes the base path off `url` and keeps the whole in `originalUrl`; others leave `url` whole. */
function pathOf({ url = "/", originalUrl }: ConsoleRequest, basePath: string): string {
  const whole = originalUrl ?? url;
  const [pathname] = split(whole);
  if (basePath !== "" && (pathname === basePath || pathname.startsWith(`${basePath}/`))) {
    return whole.slice(basePath.length);
  }
  return url;
}

function split(url: string): [string, string] {
  const at = url.indexOf("?");
  return at < 0 ? [url, ""] : [url.slice(0, at), url.slice(at + 1)];
}

/** Bodies are a few fields; a name has 512 bytes, a reason 500 characters. */
const MOST_BYTES = 16_384;

/**
 * The fields of a JSON body.
 *
 * @throws HttpProblem  415, 413, 400: it is not JSON, is too long, or is no object
 */
export async function bodyOf({ req }: Exchange): Promise<Readonly<Record<string, unknown>>> {
  const type = String(req.headers["content-type"] ?? "");
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new HttpProblem(415, "unsupported-media-type", "The body must be JSON, with Content-Type: application/json.");
  }
  const body = req.body === undefined ? parsed(await textOf(req)) : parsed(req.body);
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw badRequest("The body must be a JSON object.");
  }
  return body as Readonly<Record<string, unknown>>;
}

function parsed(body: unknown): unknown {
  if (typeof body !== "string" && !Buffer.isBuffer(body)) return body;
  if (body.length > MOST_BYTES) throw tooLarge();
  try {
    return JSON.parse(body.toString());
  } catch {
    throw badRequest("The body is not JSON.");
  }
}

async function textOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function tooLarge(): HttpProblem {
  // What is still on its way is not read, so the connection cannot be used again.
  const headers = { Connection: "close" };
  return new HttpProblem(413, "too-large", `The body must be at most ${MOST_BYTES} bytes.`, { headers });
}
