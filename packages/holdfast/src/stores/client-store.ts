import { UnsupportedError } from "../core/errors.js";
import type { Grace, Inbox, Replicas, Store } from "../core/store.js";
import { ClusterHub, type ClusterNodes } from "./cluster-hub.js";
import type { FailoverGuard } from "./failover-guard.js";
import { notRun } from "./failure.js";
import { InboxHub, type Subscriber, type SubscriberEvents } from "./inbox-hub.js";
import { type ScriptClient, ScriptRunner } from "./script-runner.js";
import { ServerFailoverGuard } from "./server-failover-guard.js";

/** Opens a subscriber connection that reports to `events`. The store owns the connection and closes it. */
export type OpenSubscriber = (events: SubscriberEvents) => Subscriber | Promise<Subscriber>;

/** Opens inboxes; see `Store.inbox` and `Store.shardInbox`. */
export interface Inboxes {
  open(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;
  /** Present only for a cluster. */
  openShard?(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;
  close(): Promise<void>;
}

/** The parts of a store that differ between client libraries. */
export interface ClientParts {
  readonly kind: string;
  readonly client: ScriptClient;
  /** Creates the inboxes. They call `onReconnect` when they are subscribed again after a lost connection. */
  inboxes(onReconnect: () => void): Inboxes;
  /**
   * Calls `onBack` whenever the caller's client is ready again after a lost connection.
   *
   * @returns a function that removes `onBack`
   */
  watch(onBack: () => void): () => void;
  readonly conditions: GrantConditions;
  /** Creates the failover guard. By default, it is the guard for a single server. */
  readonly failoverGuard?: ((grace: Grace, run: Store["run"], client: ScriptClient) => FailoverGuard) | undefined;
  /** See `Store.server`. */
  readonly server?: Store["server"] | undefined;
  /** See `Store.clientTimeouts`. */
  readonly clientTimeouts?: NonNullable<Store["clientTimeouts"]> | undefined;
}

/** Conditions under which a grant counts. */
export interface GrantConditions {
  /** How to ask the server whether it may grant locks. If absent, it always may. */
  readonly grace?: Grace | undefined;
  /** How many replicas must acknowledge a renewal for it to count. If absent, none. */
  readonly replicas?: Replicas | undefined;
}

/** Keeps one part, such as a listener, per client, and shares it among all stores on that client. */
class SharedParts<Part> {
  readonly #byClient = new WeakMap<object, { readonly part: Part; readonly users: Set<() => void> }>();

  /**
   * Registers a callback and returns the part, which `make` creates on the first call. Each event of the part runs all
   * callbacks.
   */
  join(client: object, user: () => void, make: (onEvent: () => void) => Part): Part {
    let shared = this.#byClient.get(client);
    if (shared === undefined) {
      const users = new Set<() => void>();
      const part = make(() => {
        for (const each of users) each();
      });
      shared = { part, users };
      this.#byClient.set(client, shared);
    }
    shared.users.add(user);
    return shared.part;
  }

  /** Removes a user. @returns the part if that was its last user */
  leave(client: object, user: () => void): Part | undefined {
    const shared = this.#byClient.get(client);
    if (shared === undefined || !shared.users.delete(user) || shared.users.size > 0) return undefined;
    this.#byClient.delete(client);
    return shared.part;
  }
}

const STORE_CLOSED = new Error("the store was closed");
const sharedInboxes = new SharedParts<Inboxes>();
const sharedWatches = new SharedParts<() => void>();

/**
 * Shares the subscriber connections among all stores on one client. A program that calls `createHoldfast` repeatedly,
 * such as one that a development server reloads, then has one subscriber connection instead of one per call. A store
 * counts as a user once it opens its first inbox. The connections close when the last user leaves.
 *
 * @param hasShards  whether `client` is a cluster client
 */
function overShared(client: object, make: ClientParts["inboxes"], hasShards: boolean): ClientParts["inboxes"] {
  return (onReconnect) => {
    // The callback is wrapped in a new function, because it may be registered twice.
    const user = (): void => onReconnect();
    let isClosed = false;
    const join = (channel: string): Inboxes => {
      if (isClosed) throw notRun(channel, STORE_CLOSED, false);
      return sharedInboxes.join(client, user, make);
    };
    const openShard: Required<Inboxes>["openShard"] = async (channel, onMessage, timeoutMs) =>
      (join(channel) as Required<Inboxes>).openShard(channel, onMessage, timeoutMs);
    return {
      open: async (channel, onMessage, timeoutMs) => join(channel).open(channel, onMessage, timeoutMs),
      ...(hasShards && { openShard }),
      async close() {
        isClosed = true;
        await sharedInboxes.leave(client, user)?.close();
      },
    };
  };
}

/**
 * Inboxes over the connection that `openSubscriber` opens. Without `openSubscriber`, all stores on `client` share a
 * connection.
 */
export function overSubscriber(
  client: object,
  openSubscriber: OpenSubscriber | undefined,
  openShared: OpenSubscriber,
): ClientParts["inboxes"] {
  if (openSubscriber !== undefined) return (onReconnect) => new InboxHub(openSubscriber, onReconnect);
  return overShared(client, (onReconnect) => new InboxHub(openShared, onReconnect), false);
}

/** Inboxes over one subscriber connection per cluster server in use. All stores on `client` share them. */
export function overNodes(client: object, nodes: ClusterNodes): ClientParts["inboxes"] {
  return overShared(client, (onReconnect) => new ClusterHub(nodes, onReconnect), true);
}

/**
 * Shares one listener among all stores on one client. A process can have any number of Holdfast instances on a client,
 * but Node warns about a leak at the eleventh listener. The listener is added for the first store and removed after the
 * last.
 */
export function sharedWatch(client: object, watch: ClientParts["watch"]): ClientParts["watch"] {
  return (onBack) => {
    const user = (): void => onBack();
    sharedWatches.join(client, user, watch);
    return () => sharedWatches.leave(client, user)?.();
  };
}

/** Implements `Store` with the parts of one client library. */
export function clientStore({
  kind,
  client: calls,
  inboxes,
  watch,
  conditions,
  failoverGuard = (grace, run) => new ServerFailoverGuard(grace, run),
  server,
  clientTimeouts,
}: ClientParts): Store {
  const client: ScriptClient = { ...calls, cure: () => clientTimeouts?.()?.cure };
  const { grace, replicas } = conditions;
  if (replicas !== undefined && client.acknowledged === undefined) {
    throw new UnsupportedError(
      "replicas",
      `The option \`replicas\` needs WAIT on the connection that ran the script, which this ${kind} client does not support.`,
    );
  }
  const guard = grace && failoverGuard(grace, new ScriptRunner(client).run, client);
  const listeners = new Set<(connection: "commands" | "inbox") => void>();
  const notify = (connection: "commands" | "inbox"): void => {
    for (const listener of listeners) listener(connection);
  };
  const hub = inboxes(() => notify("inbox"));
  const unwatch = watch(() => {
    guard?.serverMayHaveChanged();
    client.free = calls.free;
    notify("commands");
  });
  const openShard = hub.openShard?.bind(hub);
  const runner = new ScriptRunner(client, guard, replicas);

  return {
    kind,
    ...(server && { server }),
    ...(clientTimeouts && { clientTimeouts }),
    run: runner.run,
    releasesNatively: runner.releasesNatively,
    confirmsGrants: replicas !== undefined,
    lineageKey: (key) => guard?.markerOf(key),
    memory: guard?.memory,
    isClosed: client.isClosed,
    inbox: (channel, onMessage, timeoutMs) => hub.open(channel, onMessage, timeoutMs),
    ...(openShard && { shardInbox: openShard }),
    onReconnect(listener) {
      // The listener is wrapped in a new function, because it may be registered twice.
      const own = (connection: "commands" | "inbox"): void => listener(connection);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    async close() {
      unwatch();
      listeners.clear();
      await hub.close();
    },
  };
}
