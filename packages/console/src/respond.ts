/** Answers, and the headers that each of them has. */
import type { ServerResponse } from "node:http";
import type { HttpProblem } from "./problem.js";

/**
 * Of every answer. Nothing but our own files may run, be loaded, or be asked; no page may frame us; and a form that a broken
 * script failed to catch is sent nowhere.
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

/** Puts them on. What a framework said about other origins is taken off: no page but ours may read this. */
export function protect(res: ServerResponse): void {
  for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value);
  res.removeHeader("Access-Control-Allow-Origin");
  res.removeHeader("Access-Control-Allow-Credentials");
  res.removeHeader("X-Powered-By");
}

/** A whole answer. */
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

/** A document of the API. */
export function sendJson(
  res: ServerResponse,
  document: object,
  headers: Readonly<Record<string, string | readonly string[]>> = {},
): void {
  const own = { "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store" };
  send(res, 200, { ...own, ...headers }, JSON.stringify(document));
}

/** What went wrong. */
export function sendProblem(res: ServerResponse, problem: HttpProblem): void {
  const own = { "Content-Type": "application/problem+json; charset=utf-8", "Cache-Control": "no-store" };
  send(res, problem.status, { ...own, ...problem.headers }, JSON.stringify(problem));
}
