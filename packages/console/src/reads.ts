/** The GET routes of the API. They change nothing and show only what the viewer may see. */
import { LOCK_KINDS, type SurveyOptions, type SurveyPage, survey } from "holdfast/admin";
import type { Viewer } from "./access.js";
import { type DeadlockView, type Extent, type LockRow, MOST_FOLLOWED, type Stamped } from "./api.js";
import type { Core } from "./core.js";
import { deadlockView, namesIn } from "./deadlocks.js";
import type { Exchange } from "./exchange.js";
import { readFilter } from "./filter.js";
import { csvOf, historyQuery, readRows, wholeOf } from "./history.js";
import { lockAnswer } from "./lock-answer.js";
import { placeOf } from "./locks.js";
import { readOnce } from "./once.js";
import type { LockPlace } from "./place.js";
import { badRequest, HttpProblem } from "./problem.js";
import { send, sendJson } from "./respond.js";
import { rowOf } from "./views.js";
import { Visibility } from "./visibility.js";

/** Handles one request of an authorized viewer. */
export type Read = (core: Core, exchange: Exchange, viewer: Viewer) => Promise<void>;

const EMPTY: Extent = { isCut: false, unreachable: 0 };

/** The routes, by path. */
export const READS: Readonly<Record<string, Read>> = {
  "api/locks": locks,
  "api/lock": async (core, exchange, viewer) => {
    const { query } = exchange;
    await lock(
      core,
      exchange,
      viewer,
      placeOf({ kind: query.get("kind"), name: query.get("name"), key: query.get("key") }),
    );
  },
  "api/deadlocks": async (core, { res }, viewer) => {
    const { deadlocks, isComplete, unreachable } = await core.deadlocks.result();
    const { redact } = core.reader.context();
    const visibility = new Visibility(viewer);
    const seen: DeadlockView[] = [];
    for (const view of deadlocks.map((one) => deadlockView(one, redact))) {
      const names = namesIn(view);
      if ((await visibility.among(names, (name) => name)).length === names.length) seen.push(view);
    }
    sendJson(res, { ...stamp(core), deadlocks: seen, isComplete: isComplete && unreachable === 0 });
  },
  "api/clients": async (core, { res }, viewer) => {
    const { clients, atMs } = await core.poller.fresh(["clients"]);
    const state = clients ?? { clients: [], lockCount: null, ...EMPTY };
    sendJson(res, { v: 1, atMs, ...(await new Visibility(viewer).clients(state)) });
  },
  "api/semaphores": async (core, { res }, viewer) => {
    const { semaphores, atMs } = await core.poller.fresh(["semaphores"]);
    const state = semaphores ?? { semaphores: [], ...EMPTY };
    sendJson(res, { v: 1, atMs, ...(await new Visibility(viewer).semaphores(state)) });
  },
  "api/elections": async (core, { res }, viewer) => {
    const { elections, atMs } = await core.poller.fresh(["elections"]);
    const state = elections ?? { elections: [], ...EMPTY };
    sendJson(res, { v: 1, atMs, ...(await new Visibility(viewer).elections(state)) });
  },
  "api/once": readOnce,
  "api/history": async (core, exchange, viewer) => {
    sendJson(exchange.res, { ...stamp(core), ...(await history(core, exchange, viewer)) });
  },
  "api/history.csv": async (core, exchange, viewer) => {
    const found = await history(core, exchange, viewer);
    const headers = {
      "Content-Type": "text/csv; charset=utf-8",
      "Content-Disposition": 'attachment; filename="holdfast-history.csv"',
      "Cache-Control": "no-store",
    };
    send(exchange.res, 200, headers, csvOf(found));
  },
  "api/redis": async (core, { res }) => {
    // This page must also work while Redis is down.
    const found = await core.poller.fresh(["redis"]).catch((error: unknown) => {
      if (error instanceof HttpProblem && error.code === "redis-down") return undefined;
      throw error;
    });
    const unknown = {
      topology: "unknown",
      prefix: "",
      nodes: [],
      grace: null,
      latency: [],
      hasServerFacts: false,
      hasDoctor: false,
    };
    sendJson(res, { ...stamp(core), store: core.link.store, ...(found?.redis ?? unknown) });
  },
  "api/doctor": async (core, { res }, viewer) => {
    // Findings can name keys of any tenant, so they need their own permission.
    if (!(await viewer.may("doctor", undefined)))
      throw new HttpProblem(403, "forbidden", `${viewer.who} may not see the doctor's findings.`);
    sendJson(res, { ...stamp(core), ...core.doctor.last });
  },
};

/** GET api/lock/:kind/:name, for URLs typed by hand. @throws HttpProblem 400 */
export async function lockByPath(
  core: Core,
  exchange: Exchange,
  viewer: Viewer,
  words: readonly string[],
): Promise<void> {
  const [kind, name] = words.map(decoded);
  await lock(core, exchange, viewer, placeOf({ kind, name, key: exchange.query.get("key") }));
}

/** The first fields of every document. */
export function stamp({ reader }: Core): Stamped {
  return { v: 1, atMs: reader.nowMs() };
}

/** Reads one lock for a viewer. @throws errors from the library */
export async function readLock(core: Core, place: LockPlace, viewer: Viewer): Promise<ReturnType<typeof lockAnswer>> {
  const { reader, link, allow } = core;
  const detail = await link.use(async (backend) => {
    const around = await reader.around(backend);
    return reader.detail(backend, place, { ...around, row: undefined, old: undefined });
  });
  return lockAnswer(detail, { viewer, allow, atMs: reader.nowMs() });
}

async function lock(core: Core, { res }: Exchange, viewer: Viewer, place: LockPlace): Promise<void> {
  if (!(await new Visibility(viewer).ofName(place.name))) {
    // The same response as for a lock that does not exist, so that it does not reveal which names exist.
    throw new HttpProblem(403, "forbidden", "You may not see a lock with that name.");
  }
  sendJson(res, await readLock(core, place, viewer));
}

const SORTS: Readonly<Record<string, (left: LockRow, right: LockRow) => number>> = {
  name: (left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0),
  since: (left, right) => (left.sinceAtMs ?? Infinity) - (right.sinceAtMs ?? Infinity),
  left: (left, right) => (left.expiresAtMs ?? Infinity) - (right.expiresAtMs ?? Infinity),
  waiters: (left, right) => right.waiterCount - left.waiterCount,
};

/**
 * GET api/locks. With a filter, keeps reading until enough locks match. Otherwise an existing lock could be missing
 * from every page that a visitor looks at.
 */
async function locks(core: Core, { res, query }: Exchange, viewer: Viewer): Promise<void> {
  const { reader, link } = core;
  const limit = wholeOf("limit", query.get("limit"), 200, 1_000);
  const kind = query.get("kind") || undefined;
  const kinds = LOCK_KINDS.filter((one) => kind === undefined || one === kind);
  if (kinds.length === 0) throw badRequest(`kind must be one of ${LOCK_KINDS.join(", ")}.`);
  const sort = SORTS[query.get("sort") || "name"];
  if (sort === undefined) throw badRequest(`sort must be one of ${Object.keys(SORTS).join(", ")}.`);
  const q = query.get("q") ?? "";
  const fits = readFilter(q);
  const visibility = new Visibility(viewer);
  const rows = new Map<string, LockRow>();
  let cursor = query.get("cursor") || undefined;
  let lockCount = 0;
  let unreachable = 0;
  for (;;) {
    // At least 100, unless `limit` is lower. Otherwise, with one match to go, each request to Redis would read one
    // lock.
    const most = Math.max(limit - rows.size, Math.min(limit, 100));
    const page = await surveyed(link, { kinds, limit: most, cursor });
    const context = reader.context();
    const matching = page.locks
      .map((entry) => rowOf(entry, context, [], undefined))
      .filter((row) => fits(row, context.nowMs));
    // Locks that the viewer may not see must not count: otherwise the cursor would reveal that they match.
    for (const row of await visibility.rows(matching)) rows.set(row.id, row);
    lockCount += page.locks.length;
    unreachable = page.unreachable;
    cursor = page.nextCursor;
    // If the page is not full, the read has already examined as many keys as one request may.
    const isFull = page.locks.length >= most;
    if (q === "" || cursor === undefined || rows.size >= limit || lockCount >= MOST_FOLLOWED || !isFull) break;
  }
  sendJson(res, {
    ...stamp(core),
    rows: [...rows.values()].sort(sort),
    nextCursor: cursor ?? null,
    lockCount: viewer.seesAll ? lockCount : null,
    unreachable,
  });
}

/** One page of locks. @throws HttpProblem 400  invalid cursor; 503  Redis is down */
function surveyed(link: Core["link"], options: SurveyOptions): Promise<SurveyPage> {
  return link.use(async ({ holdfast }) => {
    try {
      return await survey(holdfast, options);
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError) throw badRequest(error.message);
      throw error;
    }
  });
}

async function history(core: Core, { query }: Exchange, viewer: Viewer): Promise<Awaited<ReturnType<typeof readRows>>> {
  const wanted = historyQuery(query);
  const visibility = new Visibility(viewer);
  if (wanted.name !== undefined && !(await visibility.ofName(wanted.name))) return { rows: [], isCut: false };
  return readRows(core.link, wanted, { context: core.reader.context(), visibility });
}

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    throw badRequest("The path contains an invalid percent-encoding.");
  }
}
