/**
 * Routes requests. Every request passes the same checks in the same order: host name, requesting site, visitor, and
 * for changes the origin and CSRF token. Actions that are not allowed have no route.
 */
import type { ServerResponse } from "node:http";
import type { Viewer } from "./access.js";
import { ACTION_TABLE } from "./actions.js";
import type { ActionAnswer, SessionAnswer, Topic } from "./api.js";
import type { Core } from "./core.js";
import { bodyOf, type ConsoleRequest, type Exchange, exchangeOf } from "./exchange.js";
import { reasonOf, textOf } from "./fields.js";
import { checkCsrf, checkHost, checkOrigin, checkSite } from "./guard.js";
import { placeOf } from "./locks.js";
import { badRequest, HttpProblem } from "./problem.js";
import { lockByPath, READS, readLock, stamp } from "./reads.js";
import { protect, send, sendJson, sendProblem } from "./respond.js";
import { StreamView } from "./stream-view.js";
import { version } from "./version.js";
import { Visibility } from "./visibility.js";

/** Handles a request. Never rejects. */
export async function handle(core: Core, req: ConsoleRequest, res: ServerResponse): Promise<void> {
  try {
    protect(res);
    await route(core, exchangeOf(req, res, core.basePath));
  } catch (error) {
    const problem = problemOf(error);
    if (problem.code === "failed") core.report(error);
    if (res.headersSent) res.destroy();
    else sendProblem(res, problem);
  }
}

async function route(core: Core, exchange: Exchange): Promise<void> {
  const { path, method, res } = exchange;
  if (core.allowHosts !== undefined) checkHost(exchange, core.allowHosts);
  if (path === undefined) {
    // The pages use relative URLs, so the path must end with a slash.
    const last = core.basePath.slice(core.basePath.lastIndexOf("/") + 1);
    send(res, 308, { Location: `${last}/`, "Content-Type": "text/plain; charset=utf-8" }, "");
    return;
  }
  if (path !== "api" && !path.startsWith("api/")) {
    only("GET", method);
    if (core.assets.serve(res, path)) return;
    throw notFound();
  }
  checkSite(exchange);
  if (path === "api/session") return session(core, exchange);
  if (path === "api/login") return login(core, exchange);
  const viewer = await core.access.viewerOf(exchange);
  if (viewer === undefined) throw stranger(core);
  if (path === "api/logout") return logout(core, exchange, viewer);
  if (path === "api/events") return events(core, exchange, viewer);
  if (path === "api/doctor" && method === "POST") return runDoctor(core, exchange, viewer);
  if (path.startsWith("api/actions/")) return act(core, exchange, viewer, path.slice("api/actions/".length));
  const words = path.split("/");
  const read = Object.hasOwn(READS, path) ? READS[path] : undefined;
  if (read !== undefined) {
    only("GET", method);
    return read(core, exchange, viewer);
  }
  if (words.length === 4 && words[1] === "lock") {
    only("GET", method);
    return lockByPath(core, exchange, viewer, words.slice(2));
  }
  throw notFound();
}

async function session(core: Core, exchange: Exchange): Promise<void> {
  only("GET", exchange.method);
  sendJson(exchange.res, sessionAnswer(core, await core.access.viewerOf(exchange)));
}

/** The session. A visitor who is not signed in learns only how to sign in, and the environment badge. */
function sessionAnswer(core: Core, viewer: Viewer | undefined): SessionAnswer {
  return {
    ...stamp(core),
    isSignedIn: viewer !== undefined,
    login: core.access.login,
    who: viewer?.who ?? null,
    csrf: viewer === undefined || viewer.csrf === "" ? null : viewer.csrf,
    allow: viewer === undefined ? [] : core.allow,
    env: core.env,
    redacted: viewer === undefined ? [] : core.redacted,
    pollMs: core.pollMs,
    version: viewer === undefined ? "" : version(),
  };
}

const LONGEST_NAME = 64;

async function login(core: Core, exchange: Exchange): Promise<void> {
  only("POST", exchange.method);
  checkOrigin(exchange);
  const fields = await bodyOf(exchange);
  const token = textOf(fields, "token", 1_024);
  const { name = "" } = fields;
  if (typeof name !== "string" || name.length > LONGEST_NAME || /\p{Cc}|\p{Surrogate}/u.test(name)) {
    throw badRequest(`name must be a string of at most ${LONGEST_NAME} characters.`);
  }
  const { viewer, cookie } = core.access.signIn(exchange, token, name.trim() || "console");
  sendJson(exchange.res, sessionAnswer(core, viewer), { "Set-Cookie": cookie });
}

async function logout(core: Core, exchange: Exchange, viewer: Viewer): Promise<void> {
  only("POST", exchange.method);
  checkChange(exchange, viewer);
  sendJson(exchange.res, sessionAnswer(core, undefined), { "Set-Cookie": core.access.signOut(exchange) });
}

const TOPICS: readonly Topic[] = ["locks", "lock", "clients", "semaphores", "elections", "redis"];

async function events(core: Core, exchange: Exchange, viewer: Viewer): Promise<void> {
  const { method, query, req, res } = exchange;
  only("GET", method);
  const wanted = (query.get("topics") ?? "").split(",").filter((word) => word !== "");
  const topics = new Set(TOPICS.filter((topic) => wanted.includes(topic)));
  if (topics.size !== new Set(wanted).size) throw badRequest(`topics must be some of ${TOPICS.join(",")}.`);
  const named = { kind: query.get("kind"), name: query.get("name"), key: query.get("key") };
  const lock = topics.has("lock") ? placeOf(named) : undefined;
  if (lock !== undefined && !(await new Visibility(viewer).ofName(lock.name))) {
    throw new HttpProblem(403, "forbidden", "You may not see a lock with that name.");
  }
  if (exchange.req.method === "HEAD") return send(res, 200, { "Content-Type": "text/event-stream" }, "");
  const { allow, poller, link, reader } = core;
  const view = new StreamView({ viewer, topics, lock, allow, poller, link, nowMs: () => reader.nowMs() });
  const lastId = String(req.headers["last-event-id"] ?? query.get("lastEventId") ?? "");
  core.streams.open(res, { viewer, topics, lock, lastId }, view);
}

async function runDoctor(core: Core, exchange: Exchange, viewer: Viewer): Promise<void> {
  checkChange(exchange, viewer);
  if (!(await viewer.may("doctor", undefined)))
    throw new HttpProblem(403, "forbidden", `${viewer.who} may not run the doctor.`);
  await core.doctor.run();
  sendJson(exchange.res, { ...stamp(core), ...core.doctor.last });
}

async function act(core: Core, exchange: Exchange, viewer: Viewer, name: string): Promise<void> {
  const action = Object.hasOwn(ACTION_TABLE, name) ? ACTION_TABLE[name] : undefined;
  // A console that does not allow the action has no such route.
  if (action === undefined || !core.allow.includes(action.needs)) throw notFound();
  only("POST", exchange.method);
  checkChange(exchange, viewer);
  const fields = await bodyOf(exchange);
  reasonOf(fields);
  const { address } = exchange;
  const { reader, audit, link, poller } = core;
  const { message, place } = await link
    .use((backend) => action.run(backend, { viewer, address, fields, context: reader.context(), audit }))
    .catch((error: unknown) => {
      throw unknownOutcome(error);
    });
  poller.soon();
  const lock = place === undefined ? null : await readLock(core, place, viewer).catch(() => null);
  const answer: ActionAnswer = { ...stamp(core), action: name, message, lock };
  sendJson(exchange.res, answer);
}

/** Checks that a change from a browser comes from the console's own page and this session. */
function checkChange(exchange: Exchange, viewer: Viewer): void {
  if (!viewer.isAmbient) return;
  checkOrigin(exchange);
  checkCsrf(exchange, viewer.csrf);
}

/** Turns an error after which an action may have run into one that says so. */
function unknownOutcome(error: unknown): unknown {
  const cause =
    error instanceof HttpProblem ? (error.cause as { readonly mayHaveRun?: unknown } | undefined) : undefined;
  if (!(error instanceof HttpProblem) || cause?.mayHaveRun !== true) return error;
  const what = error.code === "refused" ? `${error.message} The` : "Redis did not reply, so the";
  const detail = `${what} action may have been done. Look at the lock before you try again.`;
  const facts = { ...error.facts, mayHaveRun: true };
  return new HttpProblem(503, error.code, detail, { facts, headers: error.headers });
}

function stranger(core: Core): HttpProblem {
  return core.access.login === "token"
    ? new HttpProblem(401, "unauthenticated", "Sign in with the token of this console.", {
        headers: { "WWW-Authenticate": "Bearer" },
      })
    : new HttpProblem(403, "forbidden", "The application that mounts this console refused access.");
}

function only(allowed: "GET" | "POST", method: string): void {
  if (method === allowed) return;
  const headers = { Allow: allowed === "GET" ? "GET, HEAD" : allowed };
  throw new HttpProblem(405, "method-not-allowed", `Only ${allowed} is allowed here. Nothing was done.`, { headers });
}

function notFound(): HttpProblem {
  return new HttpProblem(404, "not-found", "No such page.");
}

/**
 * The error to show. Errors from the library are shown with their message; all others are internal and only reported.
 */
function problemOf(error: unknown): HttpProblem {
  if (error instanceof HttpProblem) return error;
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  if (typeof code === "string" && code.startsWith("ERR_LOCK_")) {
    const isClosed = code === "ERR_LOCK_CLOSED";
    return new HttpProblem(isClosed ? 503 : 500, isClosed ? "closed" : "failed", String(message));
  }
  return new HttpProblem(500, "failed", "The console failed. See its log.");
}
