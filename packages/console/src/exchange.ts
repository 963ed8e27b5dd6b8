/** A request and its response, with a path relative to the base path, independent of the framework. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import { badRequest, HttpProblem } from "./problem.js";

/** A request, with fields that a framework may have added. */
export type ConsoleRequest = IncomingMessage & {
  /** The path before the framework removed its mount point (Express, Connect, Nest). */
  readonly originalUrl?: string;
  /** A body that the framework has already read and parsed. */
  readonly body?: unknown;
};

/** One HTTP exchange. */
export interface Exchange {
  readonly req: ConsoleRequest;
  readonly res: ServerResponse;
  /** GET for a HEAD request too, because Node omits the body automatically. */
  readonly method: string;
  /**
   * Raw path below the base path, without the leading slash: `api/locks`. Undefined if the base's trailing slash is
   * missing.
   */
  readonly path: string | undefined;
  readonly query: URLSearchParams;
  /** The address of the socket. Forwarding headers from a proxy are not trusted. */
  readonly address: string;
  /** Whether the browser uses https, to this server or to a proxy in front of it. */
  readonly isSecure: boolean;
}

/** Parses a request. */
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

/** Whether the connection to this server is encrypted. */
export function isEncrypted(req: IncomingMessage): boolean {
  return (req.socket as Partial<TLSSocket>).encrypted === true;
}

/** The protocol that a proxy reports for the browser. It is trusted only where it makes checks stricter. */
function forwardedAs(req: IncomingMessage): string | undefined {
  const header = req.headers["x-forwarded-proto"];
  return String(header ?? "")
    .split(",")[0]
    ?.trim()
    .toLowerCase();
}

/** The full path: from `originalUrl` if a framework removed the base path from `url`, otherwise from `url`. */
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

/** Maximum size of a body. It has only a few fields: a name has at most 512 bytes, a reason at most 256. */
const MOST_BYTES = 16_384;

/**
 * The fields of a JSON body.
 *
 * @throws HttpProblem  415 not JSON, 413 too long, 400 invalid JSON or not an object
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
  // The rest of the body is not read, so the connection cannot be reused.
  const headers = { Connection: "close" };
  return new HttpProblem(413, "too-large", `The body must be at most ${MOST_BYTES} bytes.`, { headers });
}
