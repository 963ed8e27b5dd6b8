/**
 * What the console's server says and hears: the list of routes is here, and beside it, in api/, a file for each page with
 * the answers, events and request bodies of its routes.
 *
 * It is the contract of two programs, so it imports nothing else, and nothing of it exists at run time but `ROUTES`, the name
 * of a header and the lists of words. Paths are relative to the base path: `api/locks` stands for `<basePath>/api/locks`.
 *
 * The server has one page, `index.html` at `<basePath>/`, and its hashed files beside it (`assets/…`). Where in the page one is
 * stands in the fragment (`#/locks?q=…`), which no access log sees; `#token=…` is the fragment that signs in.
 *
 * Common to all:
 * - Every document has `v: 1` and `atMs`: the Redis server's clock when it was made, in ms since 1970. Every instant is by that
 *   clock, so that the browser counts down from it and not from the visitor's own. Fields are added, never renamed.
 * - `null` means none or not known. Names, labels, values and reasons are hostile text: render as text only.
 * - A lease is told by the instant at which it ends (`expiresAtMs`), so that a row that nobody touches does not change.
 * - What is hidden by `--redact` arrives as `null`, and `session.redacted` names it.
 * - Errors are `application/problem+json` (`Problem`). 401 means sign in; 403 not yours to do; 503 Redis is down.
 */

export * from "./api/actions.js";
export * from "./api/clients.js";
export * from "./api/deadlocks.js";
export * from "./api/document.js";
export * from "./api/elections.js";
export * from "./api/history.js";
export * from "./api/locks.js";
export * from "./api/once.js";
export * from "./api/problem.js";
export * from "./api/redis.js";
export * from "./api/semaphores.js";
export * from "./api/session.js";
export * from "./api/stream.js";

/** The header that carries `session.csrf` with every POST that a signed-in page sends. */
export const CSRF_HEADER = "x-holdfast-csrf";

/**
 * Every route. An action whose permission was not given is not routed: 404, as any other unknown path.
 * A GET of an action that is routed is a 405 with `Allow: POST`.
 */
export const ROUTES = {
  session: "GET api/session -> SessionAnswer (200 also when signed out)",
  login: "POST api/login LoginBody -> SessionAnswer; 401 wrong token, 429 too many attempts (Retry-After)",
  logout: "POST api/logout {} -> SessionAnswer",
  locks: "GET api/locks?q=&kind=&sort=name|since|left|waiters&limit=&cursor= -> LocksAnswer",
  lock: "GET api/lock?kind=&name=[&key=] -> LockAnswer; also api/lock/:kind/:name, but no path can carry a name such as `..`",
  deadlocks: "GET api/deadlocks -> DeadlocksAnswer",
  clients: "GET api/clients -> ClientsAnswer",
  semaphores: "GET api/semaphores -> SemaphoresAnswer",
  elections: "GET api/elections -> ElectionsAnswer",
  once: "GET api/once?q=&state=&limit=&cursor= -> OnceAnswer",
  history: "GET api/history?name=&part=&kind=&since=24h&outcome=&limit= -> HistoryAnswer",
  historyCsv: "GET api/history.csv?… as above -> text/csv, as a download",
  redis: "GET api/redis -> RedisAnswer (200 also when Redis is down: it then tells that)",
  doctor: "GET api/doctor -> DoctorAnswer of the last run",
  runDoctor: "POST api/doctor {} -> DoctorAnswer of a new run, at most one each 10 s",
  events: "GET api/events?topics=locks,lock&kind=&name= -> text/event-stream, see StreamEvents",
  release: "POST api/actions/release ReleaseBody -> ActionAnswer               (allow: release)",
  releaseClient: "POST api/actions/release-client ReleaseClientBody -> ActionAnswer  (allow: release)",
  pause: "POST api/actions/pause PauseBody -> ActionAnswer                   (allow: pause)",
  extendPause: "POST api/actions/extend-pause ExtendPauseBody -> ActionAnswer      (allow: pause)",
  resume: "POST api/actions/resume ResumeBody -> ActionAnswer                 (allow: resume)",
  resize: "POST api/actions/resize ResizeBody -> ActionAnswer                 (allow: resize)",
  resign: "POST api/actions/resign ResignBody -> ActionAnswer                 (allow: resign)",
  resolveOnce: "POST api/actions/resolve-once ResolveOnceBody -> ActionAnswer       (allow: resolve)",
} as const;
