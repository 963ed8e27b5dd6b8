import { StoreError, UnsupportedError } from "../core/errors.js";
import type { Grace, Inbox, Replicas, Store } from "../core/store.js";
import { ClusterFailoverGuard } from "./cluster-failover-guard.js";
import { ClusterHub, type ClusterNodes } from "./cluster-hub.js";
import type { FailoverGuard } from "./failover-guard.js";
import { isUnknownScript } from "./failure.js";
import { InboxHub, type Subscriber, type SubscriberEvents } from "./inbox-hub.js";
import { runOnEach, type ScriptClient, ScriptRunner } from "./script-runner.js";
import { ServerFailoverGuard } from "./server-failover-guard.js";
import { within } from "./timeout.js";

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
  /** Calls `onBack` whenever the caller's client is ready again after a lost connection. @returns stops watching */
  watch(onBack: () => void): () => void;
  readonly conditions: GrantConditions;
  /** As `Store.server`. */
  readonly server?: Store["server"] | undefined;
  /** As `Store.clientTimeouts`. */
  readonly clientTimeouts?: NonNullable<Store["clientTimeouts"]> | undefined;
}

/** Conditions under which a grant of this store counts. */
export interface GrantConditions {
  /** How to ask the server whether it may grant locks. If absent, it always may. */
  readonly grace?: Grace | undefined;
  /** How many replicas must acknowledge a renewal for it to count. If absent, none. */
  readonly replicas?: Replicas | undefined;
}

/** Inboxes over one subscriber connection. */
export function overOneSubscriber(openSubscriber: OpenSubscriber): ClientParts["inboxes"] {
  return (onReconnect) => new InboxHub(openSubscriber, onReconnect);
}

/** Inboxes over one subscriber connection per server of a cluster. */
function overNodes(nodes: ClusterNodes): ClientParts["inboxes"] {
  return (onReconnect) => new ClusterHub(nodes, onReconnect);
}

interface SharedInboxes {
  readonly inboxes: Inboxes;
  /** The `onReconnect` callback of each store that uses these inboxes. */
  readonly users: Set<() => void>;
}

const STORE_CLOSED = new Error("the store was closed");
const sharedByClient = new WeakMap<object, SharedInboxes>();

/**
 * Shares the subscriber connections among all stores on one client. A program that calls `createHoldfast` repeatedly, such as
 * one that a development server reloads, then has one subscriber connection instead of one per call. A store becomes a user
 * with its first inbox. The last user to close closes the connections.
 *
 * @param hasShards  whether the client is that of a cluster
 */
function overShared(client: object, make: ClientParts["inboxes"], hasShards: boolean): ClientParts["inboxes"] {
  return (onReconnect) => {
    const user = (): void => onReconnect();
    let shared: SharedInboxes | undefined;
    let isClosed = false;
    const join = (channel: string): Inboxes => {
      if (isClosed) throw new StoreError(channel, { mayHaveRun: false, transient: false, cause: STORE_CLOSED });
      shared ??= sharedByClient.get(client) ?? newShared(client, make);
      shared.users.add(user);
      return shared.inboxes;
    };
    const openShard: Required<Inboxes>["openShard"] = async (channel, onMessage, timeoutMs) =>
      (join(channel) as Required<Inboxes>).openShard(channel, onMessage, timeoutMs);
    return {
      open: async (channel, onMessage, timeoutMs) => join(channel).open(channel, onMessage, timeoutMs),
      ...(hasShards ? { openShard } : {}),
      async close() {
        isClosed = true;
        if (shared === undefined || !shared.users.delete(user) || shared.users.size > 0) return;
        sharedByClient.delete(client);
        await shared.inboxes.close();
      },
    };
  };
}

function newShared(client: object, make: ClientParts["inboxes"]): SharedInboxes {
  const users = new Set<() => void>();
  const inboxes = make(() => {
    for (const user of users) user();
  });
  const shared = { inboxes, users };
  sharedByClient.set(client, shared);
  return shared;
}

/** Inboxes over one subscriber connection that all stores on `client` share. */
export function overSharedSubscriber(client: object, openSubscriber: OpenSubscriber): ClientParts["inboxes"] {
  return overShared(client, overOneSubscriber(openSubscriber), false);
}

/** Inboxes over one subscriber connection per cluster server in use. All stores on `client` share them. */
export function overSharedNodes(client: object, nodes: ClusterNodes): ClientParts["inboxes"] {
  return overShared(client, overNodes(nodes), true);
}

/** Implements `Store` with the parts of one client library. */
export function clientStore({
  kind,
  client: calls,
  inboxes,
  watch,
  conditions,
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
  const guard = grace && guardOf(client, grace);
  const listeners = new Set<(connection: "commands" | "inbox") => void>();
  const notify = (connection: "commands" | "inbox"): void => {
    for (const listener of listeners) listener(connection);
  };
  const hub = inboxes(() => notify("inbox"));
  const unwatch = watch(() => {
    guard?.serverMayHaveChanged();
    notify("commands");
  });
  const openShard = hub.openShard?.bind(hub);

  return {
    kind,
    run: new ScriptRunner(client, guard, replicas).run,
    confirmsGrants: replicas !== undefined,
    ...(server === undefined ? {} : { server }),
    ...(clientTimeouts === undefined ? {} : { clientTimeouts }),
    lineageKey: (key) => guard?.markerOf(key),
    ...(guard?.memory === undefined ? {} : { memory: guard.memory }),
    inbox: (channel, onMessage, timeoutMs) => hub.open(channel, onMessage, timeoutMs),
    ...(openShard === undefined ? {} : { shardInbox: openShard }),
    ...(client.evalshaOnEach === undefined
      ? {}
      : { runOnEach: (script, args, timeoutMs) => runOnEach(client, script, args, timeoutMs) }),
    onReconnect(listener) {
      // Wrapped in a new function, because the same listener may be registered twice.
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

/** Longest wait for a reply that does not come from one of Holdfast's scripts. */
const ANSWER_MS = 1_000;

function guardOf(client: ScriptClient, grace: Grace): FailoverGuard {
  const { run } = new ScriptRunner(client);
  if (client.isCluster !== true) return new ServerFailoverGuard(grace, run);
  return new ClusterFailoverGuard(grace, {
    run,
    knows: ({ sha1 }, key) =>
      within(ANSWER_MS, client.evalsha(sha1, [key], [])).then(
        () => true,
        (cause: unknown) => {
          if (isUnknownScript(cause)) return false;
          throw cause;
        },
      ),
    load: ({ source }, key) => within(ANSWER_MS, client.load(source, [key], 1)),
  });
}
