/**
 * What the console's server says and hears: every answer, event and request body, and the list of routes.
 *
 * It is the contract of two programs, so it imports nothing, and nothing here exists at run time but `ROUTES`, the two
 * header names and the lists of words. Paths are relative to the base path: `api/locks` stands for `<basePath>/api/locks`.
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

/** What a console may be allowed to do. A console that is allowed nothing only shows. */
export type ActionName = "release" | "pause" | "resume" | "resize" | "resign" | "resolve";

/** All of them, in the order of the help. */
export const ACTIONS: readonly ActionName[] = ["release", "pause", "resume", "resize", "resign", "resolve"];

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
  clients: "GET api/clients -> ClientsAnswer",
  semaphores: "GET api/semaphores -> SemaphoresAnswer",
  elections: "GET api/elections -> ElectionsAnswer",
  once: "GET api/once?q=&state=&limit=&cursor= -> OnceAnswer, see once-api.ts",
  history: "GET api/history?name=&kind=&since=24h&outcome=&limit= -> HistoryAnswer",
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

/** What every JSON document begins with. */
export interface Stamped {
  readonly v: 1;
  readonly atMs: number;
}

/** An error, as RFC 9457 has it. */
export interface Problem {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  /** One or two sentences for the person who reads it. */
  readonly detail: string;
  readonly code:
    | "bad-request"
    | "unauthenticated"
    | "forbidden"
    | "csrf"
    | "bad-host"
    | "not-found"
    | "method-not-allowed"
    | "stale"
    | "not-held"
    | "already-paused"
    | "not-paused"
    | "too-large"
    | "unsupported-media-type"
    | "too-many-attempts"
    | "busy"
    | "redis-down"
    | "closed"
    | "unsupported"
    | "failed";
  /** With `stale`: who holds it now; absent or null if nobody does. The page asks again, with these facts. */
  readonly holder?: HolderView | null;
  /** With `stale` of a resize: the present number of permits. */
  readonly permits?: PermitsView | null;
  /** With `redis-down`. */
  readonly store?: StoreView;
}

/** GET api/session */
export interface SessionAnswer extends Stamped {
  readonly isSignedIn: boolean;
  /** `token`: show the sign-in form; `mounted`: the application around decides, there is no form. */
  readonly login: "token" | "mounted";
  /** Who the audit line will name; null when signed out. */
  readonly who: string | null;
  /** To be sent as X-Holdfast-CSRF with every POST; null when signed out. */
  readonly csrf: string | null;
  /** What is routed; empty: read-only. */
  readonly allow: readonly ActionName[];
  readonly env: EnvironmentView | null;
  /** What is hidden from everybody. */
  readonly redacted: readonly ("label" | "value")[];
  /** How often the server looks, in ms. */
  readonly pollMs: number;
  /** False if this Redis user or topology offers no history; the page then says so. */
  readonly hasHistory: boolean;
  readonly version: string;
}

/** POST api/login. `name` goes into the audit lines; at most 64 characters. */
export interface LoginBody {
  readonly token: string;
  readonly name?: string;
}

/** `--env`. The word is shown, not only the colour. */
export interface EnvironmentView {
  readonly name: string;
  /** `danger` for names like prod, production, live; `caution` for staging and the like; `calm` for the rest. */
  readonly tone: "danger" | "caution" | "calm";
}

/** The kinds of lock, as the library names them. */
export type KindName = string;

/**
 * `awaited`: nobody holds it and somebody waits, as for a moment, or in a failover grace. `counting`: a latch above zero.
 * `gathering`: a barrier at which somebody has arrived. `broken`: a barrier whose last generation broke.
 */
export type LockState = "held" | "awaited" | "paused" | "counting" | "gathering" | "broken" | "free";

/** One hold. */
export interface HolderView {
  /** Id of the claim, as `holdfast release --owner` takes it; without its label if labels are hidden. */
  readonly owner: string;
  readonly clientId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  /** The `clientName` option. */
  readonly app: string | null;
  readonly token: number | null;
  readonly sinceAtMs: number | null;
  /** Null: no end (a foreign key without an expiry). */
  readonly expiresAtMs: number | null;
  readonly label: string | null;
  /** Together with others of the same mode (a reader, a semaphore's holder), or alone. */
  readonly mode: "shared" | "exclusive";
  /** How many permits of a semaphore, and which numbers; 1 and none for other kinds. */
  readonly permits: number;
  readonly slots: readonly number[];
}

/** One claim in the queue. */
export interface WaiterView {
  /** Its place, from 1. */
  readonly place: number;
  readonly owner: string;
  readonly clientId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly app: string | null;
  readonly label: string | null;
  readonly mode: "shared" | "exclusive";
  readonly permits: number;
  /** It waits at least since then: when it was first seen. Null before it was seen. */
  readonly sinceAtMs: number | null;
}

/** Permits of a semaphore. */
export interface PermitsView {
  readonly used: number;
  /** Null: none is on record. */
  readonly limit: number | null;
  /** True after a resize to fewer than are out; it lasts until enough came back. */
  readonly isOver: boolean;
}

/** Who keeps a name shut. */
export interface PauseView {
  readonly by: string | null;
  readonly reason: string | null;
  readonly sinceAtMs: number | null;
  /** Null: until somebody resumes it. */
  readonly untilAtMs: number | null;
  /** Compared by resume and extend-pause, so that a stale page hits no other pause. */
  readonly id: string;
}

/** One line of the list. */
export interface LockRow {
  /** Stable key of the row. */
  readonly id: string;
  readonly kind: KindName;
  readonly name: string;
  /** The `key` option of a mutex that has one; it then stands in `name` too. To be given back wherever `name` is. */
  readonly key: string | null;
  readonly state: LockState;
  /** The first 3; `holderCount` says how many. */
  readonly holders: readonly HolderView[];
  readonly holderCount: number;
  readonly waiterCount: number;
  /** Of the oldest hold, or of the pause. */
  readonly sinceAtMs: number | null;
  /** Of the first holder, if there is one; null as well when it has no end. */
  readonly expiresAtMs: number | null;
  readonly token: number | null;
  readonly permits: PermitsView | null;
  /** Of a latch: how far it has counted. */
  readonly count: { readonly left: number; readonly initial: number } | null;
  readonly label: string | null;
  readonly pause: PauseView | null;
  /** Contention, see `Samples`; empty when nobody waited in the last 5 minutes. */
  readonly waiterSamples: Samples;
}

/**
 * At most 30 numbers, one each 10 s, oldest first: the most that were seen in those 10 s. The last is the present span.
 * Kept in memory since the first viewer; nothing is invented for the time before.
 */
export type Samples = readonly number[];

/** How far 30 samples reach back, in ms. */
export const SAMPLE_SPAN_MS = 10_000;

/** GET api/locks */
export interface LocksAnswer extends Stamped {
  readonly rows: readonly LockRow[];
  /** Give it back as `cursor` for the next page; null: that was the last. */
  readonly nextCursor: string | null;
}

/** GET api/lock/:kind/:name. A name that nobody uses is `free`, never 404. */
export interface LockAnswer extends Stamped {
  readonly row: LockRow;
  /** All. */
  readonly holders: readonly HolderView[];
  /** The first 100, next one first; `row.waiterCount` says how many. */
  readonly waiters: readonly WaiterView[];
  readonly explain: ExplainView;
  /** Newest first, at most 200; also what the timeline is drawn from. Empty without history. */
  readonly history: readonly HistoryRow[];
  /** Other kinds that are in use under the same name: they do not exclude each other. */
  readonly otherKinds: readonly KindName[];
  /** What this viewer may do to it now: of `session.allow`, what fits the kind and what `authorize` lets through. */
  readonly actions: readonly ActionName[];
  readonly leader: LeaderView | null;
}

/** Why the next waiter is not running, in one sentence. */
export interface ExplainView {
  readonly code:
    | "free"
    | "no-waiters"
    | "held"
    | "paused"
    | "grace"
    | "dead-holder"
    | "no-permits"
    | "foreign"
    | "hand-over";
  readonly text: string;
  /** When it ends by itself, if nobody does anything; null if it does not. */
  readonly untilAtMs: number | null;
}

/** One process. */
export interface ClientView {
  readonly clientId: string;
  readonly host: string | null;
  readonly pid: number | null;
  readonly app: string | null;
  readonly version: string | null;
  /** Null: a record does not say when its client began. */
  readonly sinceAtMs: null;
  readonly seenAtMs: number | null;
  /** True if it has been silent for a minute although it holds or waits: what it holds ends with its leases. Null: cannot be told. */
  readonly isDead: boolean | null;
  /** What it holds, at most 100; `heldCount` says how many. */
  readonly holds: readonly HoldView[];
  readonly heldCount: number;
  readonly waitCount: number;
}

/** A hold, as seen from its client. */
export interface HoldView {
  readonly kind: KindName;
  readonly name: string;
  readonly key: string | null;
  readonly owner: string;
  readonly token: number | null;
  readonly sinceAtMs: number | null;
  readonly expiresAtMs: number | null;
}

/** GET api/clients */
export interface ClientsAnswer extends Stamped {
  readonly clients: readonly ClientView[];
}

/** One semaphore. */
export interface SemaphoreView {
  readonly row: LockRow;
  readonly permits: PermitsView | null;
  /** All, at most 1000. */
  readonly holders: readonly HolderView[];
}

/** GET api/semaphores */
export interface SemaphoresAnswer extends Stamped {
  readonly semaphores: readonly SemaphoreView[];
}

/** Who leads. */
export interface LeaderView extends HolderView {
  /** Null if values are hidden. */
  readonly value: string | null;
  readonly term: number;
}

/** One election. */
export interface ElectionView {
  readonly row: LockRow;
  readonly leader: LeaderView | null;
  readonly candidates: readonly WaiterView[];
  readonly candidateCount: number;
  /** Changes of the leader in the last day, as far as history or this process saw them; null: not known. */
  readonly transitionsLastDay: number | null;
  /** More than 6 changes in the last hour that were seen. */
  readonly isFlapping: boolean;
}

/** GET api/elections */
export interface ElectionsAnswer extends Stamped {
  readonly elections: readonly ElectionView[];
}

/** How a hold, or an attempt, ended; `held` has not ended. */
export type HistoryOutcome = "held" | "released" | "lost" | "expired" | "forced" | "skipped" | "paused" | "resumed";

/** One line of history. */
export interface HistoryRow {
  readonly id: string;
  /** When it was written: at the end of a hold. */
  readonly writtenAtMs: number;
  readonly kind: KindName | null;
  readonly name: string;
  readonly outcome: HistoryOutcome;
  readonly owner: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly app: string | null;
  readonly token: number | null;
  readonly waitedMs: number | null;
  readonly heldMs: number | null;
  /** Begin of the hold, for the timeline. */
  readonly sinceAtMs: number | null;
  readonly label: string | null;
  /** Of a forced release, a pause or a skipped run: why, and who did it. */
  readonly reason: string | null;
  readonly by: string | null;
}

/** GET api/history, newest first. */
export interface HistoryAnswer extends Stamped {
  readonly rows: readonly HistoryRow[];
  /** True if there are more than the limit. */
  readonly isCut: boolean;
  /** False: nobody has kept a history, or it cannot be read here. */
  readonly isKept: boolean;
}

/** Whether Redis answers. It is part of every stream, whatever the topics. */
export type StoreView =
  | { readonly state: "up"; readonly address: string; readonly sinceAtMs: number }
  | { readonly state: "connecting"; readonly address: string }
  | {
      readonly state: "down";
      /** Without user and password. */
      readonly address: string;
      /** In plain words, without secrets. */
      readonly error: string;
      readonly sinceAtMs: number;
      /** How many tries since then. */
      readonly attempt: number;
      readonly nextTryAtMs: number;
      /** What the doctor says to that. */
      readonly hint: string;
    };

/** One server. */
export interface NodeView {
  readonly address: string;
  readonly role: "primary" | "replica" | "unknown";
  readonly version: string | null;
  readonly uptimeMs: number | null;
  readonly usedMemoryBytes: number | null;
  readonly maxMemoryBytes: number | null;
  readonly policy: string | null;
  readonly connectedClients: number | null;
  readonly replicas: readonly { readonly address: string; readonly state: string; readonly lagMs: number | null }[];
  /** Its clock less the console's. */
  readonly clockSkewMs: number | null;
}

/** A failover grace: nothing new is granted until it ends. */
export interface GraceView {
  readonly sinceAtMs: number | null;
  readonly untilAtMs: number;
  readonly cause: string;
}

/** Round trips of the poller: at most 300, one each poll, oldest first. */
export interface LatencySample {
  readonly atMs: number;
  readonly ms: number;
}

/** GET api/redis */
export interface RedisAnswer extends Stamped {
  readonly store: StoreView;
  readonly topology: "single" | "sentinel" | "cluster" | "redlock" | "unknown";
  readonly prefix: string;
  readonly nodes: readonly NodeView[];
  readonly grace: GraceView | null;
  readonly latency: readonly LatencySample[];
  /** False: this console was mounted without a way to ask the server about itself. */
  readonly hasServerFacts: boolean;
  readonly hasDoctor: boolean;
}

/** One finding. */
export interface FindingView {
  readonly id: string;
  readonly node: string;
  readonly severity: "critical" | "warning" | "info";
  readonly status: "ok" | "finding" | "unknown" | "skipped";
  readonly measured: string;
  /** Null where nothing was found, or there is nothing to do. */
  readonly risk: string | null;
  readonly fix: string | null;
}

/** GET and POST api/doctor */
export interface DoctorAnswer extends Stamped {
  /** Null: not run since the console started. */
  readonly ranAtMs: number | null;
  readonly isRunning: boolean;
  readonly checks: readonly FindingView[];
}

/** What a page may follow. `store` comes always. `lock` needs `kind` and `name` in the query. */
export type Topic = "locks" | "lock" | "clients" | "semaphores" | "elections" | "redis";

/**
 * The stream. Each event has an id; EventSource sends the last one back after a lost connection (a page that opens a new one
 * may put it into the query as `lastEventId`), and gets what it missed, or `state` if that is too long ago.
 *
 * | event | data | |
 * |---|---|---|
 * | `state` | StreamState | the whole of all topics: replace everything |
 * | `change` | StreamChange | what is different since the event before |
 * | `end` | {} | signed out, or the console is closing: do not reconnect before api/session answers |
 *
 * A comment comes every 15 s.
 */
export interface StreamEvents {
  readonly state: StreamState;
  readonly change: StreamChange;
  readonly end: Record<string, never>;
}

/** Event `state`. A topic that was not asked for is absent; one that cannot be read now is null. */
export interface StreamState extends Stamped {
  readonly store: StoreView;
  readonly locks?: LocksState | null;
  readonly lock?: LockAnswer | null;
  readonly clients?: readonly ClientView[] | null;
  readonly semaphores?: readonly SemaphoreView[] | null;
  readonly elections?: readonly ElectionView[] | null;
  readonly redis?: RedisAnswer | null;
}

/** All locks, as far as the console follows them. */
export interface LocksState {
  readonly rows: readonly LockRow[];
  /** True if there are more than it follows (10 000): use api/locks with a filter and a cursor. */
  readonly isCut: boolean;
}

/** Event `change`. What is absent has not changed; other topics than `locks` come whole. */
export interface StreamChange extends Stamped {
  readonly store?: StoreView;
  readonly locks?: {
    readonly changed: readonly LockRow[];
    readonly removed: readonly string[];
    readonly isCut: boolean;
  };
  readonly lock?: LockAnswer | null;
  readonly clients?: readonly ClientView[];
  readonly semaphores?: readonly SemaphoreView[];
  readonly elections?: readonly ElectionView[];
  readonly redis?: RedisAnswer;
}

/** What every action says why: 1 to 256 bytes. It goes to the audit line, and to the holder's error. */
interface Reasoned {
  readonly reason: string;
}

/** Which lock, as its row says. */
export interface LockId {
  readonly kind: KindName;
  readonly name: string;
  /** Of a mutex that has one. */
  readonly key?: string | null;
}

/** Both facts as the page showed them; `token` null only for a holder that has none. 409 `stale` when it has another holder. */
export interface ReleaseBody extends Reasoned, LockId {
  readonly owner: string;
  readonly token: number | null;
}

/** All that a dead client holds. 409 `stale` if it lives. */
export interface ReleaseClientBody extends Reasoned {
  readonly clientId: string;
}

/** `untilAtMs` null: until somebody resumes it. 409 `already-paused` if it is. */
export interface PauseBody extends Reasoned, LockId {
  readonly untilAtMs: number | null;
}

/** 409 `stale` if another pause is in force, 409 `not-paused` if none is. */
export interface ExtendPauseBody extends PauseBody {
  readonly pauseId: string;
}

/** As above. */
export interface ResumeBody extends Reasoned, LockId {
  readonly pauseId: string;
}

/** `from`: the number that the page showed; 409 `stale` when it is another. */
export interface ResizeBody extends Reasoned {
  readonly name: string;
  readonly from: number;
  readonly permits: number;
}

/** 409 `stale` when the term is over. */
export interface ResignBody extends Reasoned {
  readonly name: string;
  readonly term: number;
}

/** What an action did. */
export interface ActionAnswer extends Stamped {
  readonly action: string;
  /** One sentence: what was done, to whom, and who is next. */
  readonly message: string;
  /** The state after it, if it could be read; null otherwise and for `release-client`. */
  readonly lock: LockAnswer | null;
}
