/** Sends responses with their common headers. */
import type { ServerResponse } from "node:http";
import type { HttpProblem } from "./problem.js";

/**
 * Security headers of every response. Only the console's own files may run, load or be requested; no page may frame
 * the console; and forms cannot be submitted without the script.
 */
const HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

/**
 * Sets the security headers. Removes CORS headers that a framework has set, because only the console's own page may
 * read responses.
 */
export function protect(res: ServerResponse): void {
  for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value);
  res.removeHeader("Access-Control-Allow-Origin");
  res.removeHeader("Access-Control-Allow-Credentials");
  res.removeHeader("X-Powered-By");
}

/** Sends a complete response. */
export function send(
  res: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string | readonly string[]>>,
  body: string | Buffer,
): void {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.setHeader("Content-Length", bytes.length);
  res.end(bytes);
}

/** Sends a JSON document. */
export function sendJson(
  res: ServerResponse,
  document: object,
  headers: Readonly<Record<string, string | readonly string[]>> = {},
): void {
  const own = { "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store" };
  send(res, 200, { ...own, ...headers }, JSON.stringify(document));
}

/** Sends an error. */
export function sendProblem(res: ServerResponse, problem: HttpProblem): void {
  const own = { "Content-Type": "application/problem+json; charset=utf-8", "Cache-Control": "no-store" };
  send(res, problem.status, { ...own, ...problem.headers }, JSON.stringify(problem));
}
