/** State that is shared by all locks of one Holdfast instance that uses independent servers. */
import { clientRecords, renewing } from "../client-record/client-record.js";
import { UnsupportedError } from "../core/errors.js";
import { evictionQuestion, Guard } from "../core/guard.js";
import { parseOwner } from "../core/protocol.js";
import type { Runtime } from "../core/runtime.js";
import type { ClientRecords } from "../core/session.js";
import { Session } from "../core/session.js";
import type { Inbox, Store } from "../core/store.js";
import { readMemoryPolicy, warnOfHiddenPolicy } from "../server/eviction.js";
import { Ballot } from "./ballot.js";
import { Line } from "./line.js";
import { Memories } from "./memories.js";
import { Pace } from "./pace.js";
import { QuorumCleanups } from "./quorum-cleanup.js";
import { isAnswered, type QuorumParts, type QuorumServer, type RedlockPlace } from "./servers.js";

/** The parameters of a quorum. */
export interface QuorumFacts {
  readonly runtime: Runtime;
  readonly prefix: string;
  readonly clientName: string;
  readonly commandTimeoutMs: number;
  readonly allowEviction: boolean;
  /**
   * One store per server, and how to close it. `isOwn` is true for a custom store. For such a store, Holdfast does not
   * warn if the eviction policy cannot be read.
   */
  readonly stores: readonly {
    readonly store: Store;
    readonly isOwn: boolean;
    readonly close: () => Promise<void>;
  }[];
}

/** Lease length of the acquire in `touch`, in ms. Matters only if servers become unreachable before the release. */
const TOUCH_MS = 1_000;

/** How long the first grant waits to learn whether the servers may be used, in ms. */
const CHECK_MS = 200;

/** The servers, the session and the shared state of one Holdfast instance on independent servers. */
export class Quorum implements QuorumParts {
  readonly session: Session;
  readonly servers: readonly QuorumServer[];
  readonly quorumCleanups: QuorumCleanups;
  readonly memories: Memories;
  readonly pace: Pace;
  readonly #lines = new Map<string, Line>();
  #checking: Promise<void> | undefined;
  #isChecked = false;

  constructor(facts: QuorumFacts) {
    const { runtime, prefix, clientName, commandTimeoutMs, allowEviction, stores } = facts;
    const clientId = runtime.newClientId();
    const own = { prefix, clientId, clientName, timeoutMs: commandTimeoutMs, runtime };
    const records: ClientRecords[] = [];
    this.servers = stores.map(({ store, isOwn }, index) => {
      const read = (): ReturnType<typeof readMemoryPolicy> => readMemoryPolicy(store, commandTimeoutMs);
      const onHidden = isOwn ? () => {} : warnOfHiddenPolicy;
      const there = clientRecords(store, own);
      const eviction = allowEviction ? [] : [evictionQuestion({ read, onHidden })];
      const guard = new Guard([...eviction, there.question], runtime);
      records.push(renewing(there.records, guard));
      return { index, store, guard };
    });
    const stops = this.servers.map(({ store, guard }) =>
      store.onReconnect((connection) => {
        if (connection !== "commands") return;
        guard.serverMayHaveChanged();
        this.#isChecked = false;
      }),
    );
    this.session = new Session({
      store: storeOfAll(this.servers),
      runtime,
      prefix,
      clientId,
      commandTimeoutMs,
      records: recordsOfAll(records),
      // Each server has its own guard.
      guard: new Guard([], runtime),
      closeStore: async () => {
        for (const stop of stops) stop();
        for (const line of [...this.#lines.values()]) line.close();
        await Promise.all(stores.map(({ close }) => close()));
      },
    });
    this.quorumCleanups = new QuorumCleanups(this);
    this.memories = new Memories(this.servers, runtime);
    this.pace = new Pace(runtime);
  }

  /** Returns the local queue for one lock. Creates it if there is none. */
  lineOf({ lock, channel }: RedlockPlace): Line {
    const known = this.#lines.get(lock);
    if (known !== undefined) return known;
    const line = new Line(this, channel, (closed) => {
      if (this.#lines.get(lock) === closed) this.#lines.delete(lock);
    });
    this.#lines.set(lock, line);
    return line;
  }

  /**
   * Gives way to other processes, if any of them received the message about a release.
   *
   * @param listeners  number of connections that received the message that this server published
   */
  giveWay(place: RedlockPlace, server: number, listeners: number): void {
    const own = this.#lines.get(place.lock)?.isSubscribedAt(server) === true ? 1 : 0;
    if (listeners > own && !this.session.isClosing) this.lineOf(place).wantedByOthers(server);
  }

  /**
   * Checks, in parallel with the first attempt, whether all servers may be used. Returns undefined if that is already
   * known. Waits only briefly for a server that does not reply, because that server is checked again together with its
   * vote.
   *
   * @throws EvictionError, ProtocolError  one of the servers must not be used
   */
  checkServers(lockName: string): Promise<void> | undefined {
    if (this.#isChecked) return undefined;
    this.#checking ??= this.#checkOnce(lockName).finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /**
   * If the lock is free, acquires and releases it, so that its numbers rise and waiters are notified. Never rejects.
   */
  async touch(place: RedlockPlace): Promise<void> {
    const { session, servers } = this;
    const { runtime, commandTimeoutMs: timeoutMs } = session;
    const failure = await this.memories.inform(place.name, TOUCH_MS, timeoutMs);
    if (failure !== undefined || session.isClosing) return;
    const claim = session.newClaim(place.name, TOUCH_MS, 1, "");
    const ballot = await new Promise<Ballot>((resolve) => {
      const made = new Ballot({ runtime, servers, place, claim, timeoutMs, onVerdict: () => resolve(made) });
    });
    await this.quorumCleanups.cleanUp(ballot, timeoutMs, isAnswered);
  }

  #checkOnce(lockName: string): Promise<void> {
    const { runtime, commandTimeoutMs } = this.session;
    return new Promise<void>((resolve, reject) => {
      const passed = (): void => {
        this.#isChecked = true;
        resolve();
      };
      const limit = runtime.startTimer(passed, Math.min(CHECK_MS, commandTimeoutMs), true);
      Promise.all(this.servers.map(({ guard }) => guard.check(lockName)))
        .then(passed, (error: unknown) => {
          this.#isChecked = false;
          reject(error);
        })
        .finally(() => limit.cancel());
    });
  }
}

/**
 * Returns a store for all servers. It only subscribes and reports reconnects, because the session needs nothing else.
 */
function storeOfAll(servers: readonly QuorumServer[]): Store {
  return {
    kind: "redlock",
    run: (script) =>
      Promise.reject(new UnsupportedError(script.name, "A quorum has no single server on which to run a script.")),
    async inbox(channel, onMessage, timeoutMs): Promise<Inbox> {
      const forward = (message: string): void => {
        // A forced release publishes the owner whose hold it has ended.
        const [, number] = /^[^/]+\/(\d+)\//.exec(message) ?? [];
        if (number !== undefined && parseOwner(message) !== undefined) onMessage(`-${number}`);
      };
      const opening = servers.map(({ store }) => store.inbox(channel, forward, timeoutMs));
      // One subscription is enough, because every server publishes a forced release.
      await Promise.any(opening).catch((error: unknown) => {
        throw error instanceof AggregateError ? error.errors[0] : error;
      });
      return {
        async close() {
          await Promise.allSettled(opening.map(async (inbox) => (await inbox).close()));
        },
      };
    },
    onReconnect(listener) {
      const stops = servers.map(({ store }) => store.onReconnect(listener));
      return () => {
        for (const stop of stops) stop();
      };
    },
    async close() {},
  };
}

/**
 * Combines the client records of all servers. A write goes to every server, and a read uses the first server that
 * returns the record.
 */
function recordsOfAll(all: readonly ClientRecords[]): ClientRecords {
  return {
    async announce(keepMs) {
      await Promise.allSettled(all.map((records) => records.announce(keepMs)));
    },
    async read(clientId, timeoutMs) {
      const reading = all.map(async (records) => {
        const record = await records.read(clientId, timeoutMs);
        if (record === undefined) throw new Error("this server has no record of the client");
        return record;
      });
      return Promise.any(reading).catch(() => undefined);
    },
  };
}
