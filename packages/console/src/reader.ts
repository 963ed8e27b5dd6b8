/**
 * Reads the requested topics from Redis and builds their views. Keeps only state that a single read cannot provide.
 */
import { type LockEntry, type LockKind, type Surveyed, surveyAll } from "holdfast/admin";
import { type Extent, type GraceView, type LockRow, MOST_FOLLOWED, type RedisAnswer, type Topic } from "./api.js";
import type { Backend } from "./backend.js";
import { clientViews, deadIn, type KnownClients, readClients } from "./clients.js";
import { ClockFollower } from "./clock-follower.js";
import { readDetail } from "./detail.js";
import { electionViews, Terms } from "./elections.js";
import { readGrace } from "./grace.js";
import { type Listing, nextPage } from "./listing.js";
import type { LockPlace } from "./place.js";
import { Contention, RoundTrips } from "./samples.js";
import { semaphoreViews } from "./semaphores.js";
import { describeServer } from "./servers.js";
import { hasTopic, type KeptRow, type LockDetail, type Snapshot } from "./snapshot.js";
import { idOf, type Redaction, rowOf, type ViewContext, waitersOf } from "./views.js";
import { Waits } from "./waits.js";

/** Interval between INFO requests, because their replies are long. */
const FACTS_EVERY_MS = 5_000;

/** The topics and locks to read. */
export interface Wanted {
  readonly topics: ReadonlySet<Topic>;
  readonly locks: readonly LockPlace[];
  /** Whether a request waits for all locks. Otherwise the first read returns only one page. */
  readonly isWhole: boolean;
}

const RECORDS_EVERY_MS = 5_000;

/** The kind that a page needs. Reading only that kind is faster, and the limit then applies to that kind alone. */
const KINDS: readonly (readonly ["semaphores" | "elections", LockKind])[] = [
  ["semaphores", "semaphore"],
  ["elections", "election"],
];

/** The topics that need all locks. */
const LISTS = ["locks", "clients"] as const;

type Found = Pick<Surveyed, "locks" | "isComplete" | "unreachable">;

/** What was read. A topic is absent if it was not wanted. */
interface Read {
  readonly list?: Found;
  readonly semaphores?: Found;
  readonly elections?: Found;
}

/**
 * Reads the locks that these topics need. Reads each kind separately, so that many locks of one kind do not displace
 * those of the other.
 *
 * @throws errors from the library
 */
async function surveyFor(
  { holdfast }: Backend,
  topics: ReadonlySet<Topic>,
  readList: () => Promise<Found>,
): Promise<Read> {
  const list = LISTS.some((topic) => topics.has(topic)) ? await readList() : undefined;
  const isWhole = list?.isComplete === true && list.locks.length <= MOST_FOLLOWED;
  const found = list && { ...list, locks: list.locks.slice(0, MOST_FOLLOWED), isComplete: isWhole };
  const reading = KINDS.filter(([topic]) => topics.has(topic)).map(async ([topic, kind]): Promise<Read> => {
    if (list?.isComplete === true)
      return { [topic]: { ...list, locks: list.locks.filter((lock) => lock.kind === kind) } };
    return { [topic]: await surveyAll(holdfast, { kinds: [kind], most: MOST_FOLLOWED }) };
  });
  return Object.assign(found === undefined ? {} : { list: found }, ...(await Promise.all(reading)));
}

/** Everything that was read, each lock once. */
function entriesOf({ list, semaphores, elections }: Read): readonly LockEntry[] {
  const all = [list, semaphores, elections].flatMap((found) => found?.locks ?? []);
  return [...new Map(all.map((lock) => [idOf(lock), lock])).values()];
}

function extentOf({ isComplete, unreachable }: Found): Extent {
  return { isCut: !isComplete, unreachable };
}

/** Identifies a watched lock. */
export function lockKey({ kind, name, key }: LockPlace): string {
  return idOf({ kind, name, key });
}

/** Reads topics and builds views. */
export class Reader {
  readonly #contention = new Contention();
  /** Contention of watched locks while the list has no viewers. */
  readonly #ofWatched = new Contention();
  readonly #redact: Redaction;
  readonly #clock = new ClockFollower();
  readonly #roundTrips = new RoundTrips();
  readonly #terms = new Terms();
  readonly #waits = new Waits();
  #known: { readonly readMs: number; readonly clients: KnownClients } | undefined;
  #facts: { readonly atMs: number; readonly nodes: RedisAnswer["nodes"] } | undefined;

  constructor(redact: Redaction) {
    this.#redact = redact;
  }

  /** Server time if known, otherwise local time. */
  nowMs(): number {
    return this.#clock.nowMs();
  }

  /** Discards the state when there are no more viewers. */
  forget(): void {
    this.#waits.keep([]);
    this.#facts = undefined;
    this.#known = undefined;
  }

  /** The settings for views of entries read now. */
  context(): ViewContext {
    return { redact: this.#redact, nowMs: this.nowMs() };
  }

  /** Reads the wanted topics. @throws errors from the library */
  async at(backend: Backend, { topics, locks, isWhole }: Wanted, before: Snapshot): Promise<Snapshot> {
    const reading = await this.#clock.read(backend.servers());
    if (reading !== undefined) this.#roundTrips.record(this.nowMs(), reading.roundTripMs);
    const isPaged = !isWhole && !LISTS.some((topic) => topics.has(topic) && hasTopic(before, topic, undefined));
    const paged: { listing: Listing | null } = { listing: null };
    const readList = async (): Promise<Found> => {
      if (!isPaged) return surveyAll(backend.holdfast, { most: MOST_FOLLOWED });
      const page = await nextPage(backend.holdfast, before.listing, MOST_FOLLOWED);
      const isComplete = page.nextCursor === undefined;
      if (!isComplete && page.locks.length < MOST_FOLLOWED) paged.listing = page;
      return { locks: page.locks, isComplete, unreachable: page.unreachable };
    };
    const begunMs = performance.now();
    const [read, grace, clients] = await Promise.all([
      surveyFor(backend, topics, readList),
      topics.has("redis") || locks.length > 0 ? readGrace(backend, this.nowMs()) : null,
      topics.has("clients") || locks.length > 0 ? this.#clientsOf(backend) : undefined,
    ]);
    const { list, semaphores, elections } = read;
    const found = list ?? semaphores ?? elections;
    // Without server clients, the read of the list is the only round trip that can be measured.
    if (reading === undefined && found !== undefined)
      this.#roundTrips.record(this.nowMs(), performance.now() - begunMs);
    const context = this.context();
    const rows = found === undefined ? null : this.#rows(entriesOf(read), context, before);
    const details = await this.#details(backend, locks, { before, grace, clients, rows });
    const redis = topics.has("redis") ? await this.#redis(backend, grace) : null;
    const extent = list === undefined ? { isCut: false, unreachable: 0 } : extentOf(list);
    const { listing } = paged;
    const isPartial = listing !== null;
    return {
      // Taken after all reads, so that everything in the snapshot happened before this instant.
      atMs: this.nowMs(),
      rows: topics.has("locks") ? rows : null,
      ...extent,
      isPartial: topics.has("locks") && isPartial,
      listing,
      details,
      clients:
        topics.has("clients") && list !== undefined
          ? {
              clients: clientViews(list.locks, clients, context),
              lockCount: list.locks.length,
              ...extent,
              ...(isPartial && { isPartial }),
            }
          : null,
      semaphores: semaphores
        ? { semaphores: semaphoreViews(semaphores.locks, rows, context, before), ...extentOf(semaphores) }
        : null,
      elections: elections
        ? {
            elections: electionViews(elections.locks, rows, {
              context,
              before,
              terms: this.#terms,
              waits: this.#waits,
            }),
            ...extentOf(elections),
          }
        : null,
      redis,
    };
  }

  #rows(entries: readonly LockEntry[], context: ViewContext, before: Snapshot): ReadonlyMap<string, KeptRow> {
    this.#contention.begin(context.nowMs);
    const rows = new Map<string, KeptRow>();
    for (const entry of entries) {
      const id = idOf(entry);
      this.#contention.record(id, waitersOf(entry));
      const old = before.rows?.get(id);
      const row = rowOf(entry, context, this.#contention.of(id), old?.row);
      const text = JSON.stringify(row);
      rows.set(id, old?.text === text ? old : { row, text });
    }
    return rows;
  }

  async #details(
    backend: Backend,
    locks: readonly LockPlace[],
    around: {
      readonly before: Snapshot;
      readonly grace: GraceView | null;
      readonly clients: KnownClients | undefined;
      readonly rows: ReadonlyMap<string, KeptRow> | null;
    },
  ): Promise<ReadonlyMap<string, LockDetail>> {
    const wanted = new Map(locks.map((lock) => [lockKey(lock), lock]));
    this.#waits.keep([...wanted.keys()]);
    this.#ofWatched.begin(this.nowMs());
    const details = await Promise.all(
      [...wanted].map(async ([key, place]): Promise<[string, LockDetail]> => {
        const row = around.rows?.get(key)?.row;
        const detail = await this.detail(backend, place, { ...around, row, old: around.before.details.get(key) });
        this.#ofWatched.record(key, detail.row.waiterCount);
        return [key, detail];
      }),
    );
    return new Map(details);
  }

  /** Reads one lock in detail, watched or not. @throws errors from the library */
  async detail(
    backend: Backend,
    place: LockPlace,
    known: {
      readonly grace: GraceView | null;
      readonly clients: KnownClients | undefined;
      readonly row: LockRow | undefined;
      readonly old: LockDetail | undefined;
    },
  ): Promise<LockDetail> {
    return readDetail(backend, place, {
      ...known,
      context: this.context(),
      isDead: deadIn(known.clients),
      samples: this.#ofWatched.of(lockKey(place)),
      waits: this.#waits,
    });
  }

  /** Reads what `detail` needs for a lock that is not watched. @throws errors from the library */
  async around(backend: Backend): Promise<{ readonly grace: GraceView | null; readonly clients: KnownClients }> {
    const [grace, clients] = await Promise.all([readGrace(backend, this.nowMs()), this.#clientsOf(backend)]);
    return { grace, clients };
  }

  /** Caches the client records: finding them scans all keys, and clients write them only every 20 s. */
  async #clientsOf({ holdfast }: Backend): Promise<KnownClients> {
    const known = this.#known;
    if (known !== undefined && performance.now() - known.readMs < RECORDS_EVERY_MS) return known.clients;
    const clients = await readClients(holdfast);
    this.#known = { readMs: performance.now(), clients };
    return clients;
  }

  async #redis(backend: Backend, grace: GraceView | null): Promise<Snapshot["redis"]> {
    const servers = backend.servers();
    const nowMs = this.nowMs();
    if (this.#facts === undefined || nowMs - this.#facts.atMs >= FACTS_EVERY_MS || nowMs < this.#facts.atMs) {
      this.#facts = { atMs: nowMs, nodes: await Promise.all(servers.map(describeServer)) };
    }
    return {
      topology: backend.topology,
      prefix: backend.prefix,
      nodes: this.#facts.nodes,
      grace,
      latency: this.#roundTrips.all(),
      hasServerFacts: servers.length > 0,
      hasDoctor: backend.examine !== undefined,
    };
  }
}
