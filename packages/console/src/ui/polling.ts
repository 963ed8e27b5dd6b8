/** Loads a page's state with single requests where a stream is not possible. */
import {
  type ClientsAnswer,
  type ElectionsAnswer,
  type LockAnswer,
  type LockRow,
  type LocksAnswer,
  MOST_FOLLOWED,
  type RedisAnswer,
  type SemaphoresAnswer,
  type Stamped,
  type StoreView,
  type StreamState,
  type Topic,
} from "../api.js";
import { get, RequestError } from "./requests.js";

/** What a page follows. */
export interface Subject {
  readonly topics: readonly Topic[];
  /** For the topic `lock`. */
  readonly kind?: string | undefined;
  /** For the topic `lock`. */
  readonly name?: string | undefined;
  /** For the topic `lock`, if the lock has a key. */
  readonly key?: string | undefined;
}

const ROWS_AT_ONCE = 1_000;

/**
 * Loads the topics of a page. If Redis is down, the result says so. @throws RequestError  the console does not reply
 */
export async function poll(subject: Subject): Promise<StreamState> {
  try {
    const topics = await Promise.all(subject.topics.map((topic) => ask(topic, subject)));
    const answer = Object.assign({}, ...topics) as StreamState;
    return answer.store === undefined
      ? { ...answer, store: { state: "up", address: "", sinceAtMs: answer.atMs } }
      : answer;
  } catch (error) {
    const store = error instanceof RequestError ? error.problem?.store : undefined;
    if (store === undefined) throw error;
    return { ...(await get<RedisAnswer>("api/redis").then(stampOf)), store };
  }
}

type Part = Stamped & Partial<StreamState>;

async function ask(topic: Topic, { kind, name, key }: Subject): Promise<Part> {
  switch (topic) {
    case "locks":
      return askLocks();
    case "lock": {
      const lock = await get<LockAnswer>("api/lock", { kind, name, key });
      return { ...stampOf(lock), lock };
    }
    case "clients": {
      const { v, atMs, ...clients } = await get<ClientsAnswer>("api/clients");
      return { v, atMs, clients };
    }
    case "semaphores": {
      const { v, atMs, ...semaphores } = await get<SemaphoresAnswer>("api/semaphores");
      return { v, atMs, semaphores };
    }
    case "elections": {
      const { v, atMs, ...elections } = await get<ElectionsAnswer>("api/elections");
      return { v, atMs, elections };
    }
    case "redis": {
      const redis = await get<RedisAnswer>("api/redis");
      const store: StoreView = redis.store;
      return { ...stampOf(redis), redis, store };
    }
  }
}

async function askLocks(): Promise<Part> {
  const rows: LockRow[] = [];
  let cursor: string | null = "";
  let stamp: Stamped | undefined;
  let unreachable = 0;
  while (cursor !== null && rows.length < MOST_FOLLOWED) {
    const page: LocksAnswer = await get<LocksAnswer>("api/locks", { limit: String(ROWS_AT_ONCE), cursor });
    stamp = stampOf(page);
    rows.push(...page.rows);
    cursor = page.nextCursor;
    unreachable = page.unreachable;
  }
  return { ...(stamp ?? { v: 1, atMs: Date.now() }), locks: { rows, isCut: cursor !== null, unreachable } };
}

function stampOf({ v, atMs }: Stamped): Stamped {
  return { v, atMs };
}
