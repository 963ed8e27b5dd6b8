/** What is asked of every request before anything is done: the name we were called by, and that no other page has sent it. */
import { CSRF_HEADER } from "./api.js";
import { type Exchange, isEncrypted } from "./exchange.js";
import { HttpProblem } from "./problem.js";
import { areEqual } from "./sessions.js";

const LOOPBACK = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * A page whose name was made to point at this machine (DNS rebinding) is of the same origin as we are, for the browser. But it
 * calls us by its own name.
 *
 * @param allowed  names besides those of the loopback, with or without a port
 * @throws HttpProblem 421
 */
export function checkHost(exchange: Exchange, allowed: readonly string[]): void {
  const host = hostOf(exchange);
  const name = host.replace(/:\d+$/, "");
  if (LOOPBACK.test(name) || allowed.some((one) => one.toLowerCase() === host || one.toLowerCase() === name)) return;
  throw new HttpProblem(
    421,
    "bad-host",
    "This host name is not allowed. To allow it, start the console with --allow-host NAME.",
  );
}

/**
 * No answer of the API is for a page of another origin. Browsers say where a request comes from; those that do not, and
 * scripts, are stopped by what they lack.
 *
 * @throws HttpProblem 403
 */
export function checkSite({ req }: Exchange): void {
  const site = req.headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return;
  throw new HttpProblem(403, "csrf", "Only the console's own page may send this request.");
}

/**
 * A change comes from our own page.
 *
 * @throws HttpProblem 403  `Origin` is absent or another's
 */
export function checkOrigin(exchange: Exchange): void {
  const { origin } = exchange.req.headers;
  const host = hostOf(exchange);
  // Before a proxy that ends TLS, the page's origin is https and ours is not. The other way round never happens.
  const own = isEncrypted(exchange.req) ? [`https://${host}`] : [`http://${host}`, `https://${host}`];
  if (origin !== undefined && own.includes(origin.toLowerCase())) return;
  const which = origin === undefined ? "has no Origin" : "comes from another origin";
  throw new HttpProblem(
    403,
    "csrf",
    `The request ${which}, so it is not from the console's own page. Nothing was done.`,
  );
}

/** And from somebody who could read what we told that page. @throws HttpProblem 403 */
export function checkCsrf({ req }: Exchange, expected: string): void {
  const sent = req.headers[CSRF_HEADER];
  if (typeof sent === "string" && areEqual(sent, expected)) return;
  throw new HttpProblem(
    403,
    "csrf",
    "X-Holdfast-CSRF is missing or belongs to another login. Reload the page. Nothing was done.",
  );
}

function hostOf({ req }: Exchange): string {
  return String(req.headers[":authority"] ?? req.headers.host ?? "").toLowerCase();
}
