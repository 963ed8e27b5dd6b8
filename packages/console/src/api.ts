/**
 * The HTTP API between the console's server and its pages. This file has the list of routes; api/ has one file per
 * page with the responses, events and request bodies of its routes.
 *
 * The server and the page both compile against this file, so it imports nothing else. At run time, only `ROUTES`, a
 * header name and the word lists exist. Paths are relative to the base path: `api/locks` means `<basePath>/api/locks`.
 *
 * The server has one page, `index.html` at `<basePath>/`, with its hashed files in `assets/`. The location within the
 * page is in the fragment (`#/locks?q=…`), which access logs do not record. The fragment `#token=…` signs the visitor
 * in.
 *
 * Rules for all routes:
 * - Every document has `v: 1` and `atMs`, the Redis server time when the document was made, in ms since 1970. All
 *   instants use that clock, so browsers count down independently of their own clock. Fields are added, never renamed.
 * - `null` means none or unknown. Names, labels, values and reasons are untrusted: render them as text only.
 * - A lease is given by the instant at which it ends (`expiresAtMs`), so a row changes only if its lock does.
 * - Values hidden with `--redact` are `null`, and `session.redacted` lists them.
 * - Errors are `application/problem+json` (`Problem`). 401: sign in. 403: not allowed. 503: Redis cannot be used.
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

/** The header that carries `session.csrf` with every POST from a signed-in page. */
export const CSRF_HEADER = "x-holdfast-csrf";

/**
 * Every route. Actions that are not allowed have no route: they return 404 like any unknown path. A GET of an allowed
 * action returns 405 with `Allow: POST`.
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
  redis: "GET api/redis -> RedisAnswer (200 also when Redis is down: it then says so)",
  doctor: "GET api/doctor -> DoctorAnswer of the last run",
  runDoctor: "POST api/doctor {} -> DoctorAnswer of a new run, at most one every 10 s",
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
