/** Checks on every request: the host name must be allowed, and the request must not come from a foreign page. */
import { CSRF_HEADER } from "./api.js";
import { type Exchange, isEncrypted } from "./exchange.js";
import { HttpProblem } from "./problem.js";
import { areEqual } from "./sessions.js";

const LOOPBACK = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Checks the Host header against DNS rebinding. If an attacker's host name resolves to this machine, the attacker's
 * page has the same origin as the console, but its requests carry that name.
 *
 * @param allowed  names besides the loopback names, with or without a port
 * @throws HttpProblem 421
 */
export function checkHost(exchange: Exchange, allowed: readonly string[]): void {
  const host = hostOf(exchange);
  const name = host.replace(/:\d+$/, "");
  if (LOOPBACK.test(name) || allowed.some((one) => one.toLowerCase() === host || one.toLowerCase() === name)) return;
  const how = "start the console with --allow-host NAME, or use the allowHosts option";
  throw new HttpProblem(421, "bad-host", `This host name is not allowed. To allow it, ${how}.`);
}

/**
 * Refuses API requests from pages of another origin, by the headers that browsers send. Requests without these headers
 * pass this check and are refused later unless they carry credentials.
 *
 * @throws HttpProblem 403
 */
export function checkSite({ req }: Exchange): void {
  const site = req.headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return;
  throw new HttpProblem(403, "csrf", "Only the console's own page may send this request.");
}

/**
 * Checks that a change comes from the console's own page.
 *
 * @throws HttpProblem 403  `Origin` is absent or foreign
 */
export function checkOrigin(exchange: Exchange): void {
  const { origin } = exchange.req.headers;
  const host = hostOf(exchange);
  // Behind a proxy that terminates TLS, the page's origin is https although this connection is http. The reverse
  // never occurs.
  const own = isEncrypted(exchange.req) ? [`https://${host}`] : [`http://${host}`, `https://${host}`];
  if (origin !== undefined && own.includes(origin.toLowerCase())) return;
  const which = origin === undefined ? "has no Origin" : "comes from another origin";
  throw new HttpProblem(
    403,
    "csrf",
    `The request ${which}, so it is not from the console's own page. Nothing was done.`,
  );
}

/** Checks the CSRF token, which only the console's own page can read. @throws HttpProblem 403 */
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
