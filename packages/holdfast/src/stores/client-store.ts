import { UnsupportedError } from "../core/errors.js";
import type { Grace, Inbox, Replicas, Store } from "../core/store.js";
import { ClusterFailoverGuard } from "./cluster-failover-guard.js";
import { ClusterHub, type ClusterNodes } from "./cluster-hub.js";
import type { FailoverGuard } from "./failover-guard.js";
import { isUnknownScript } from "./failure.js";
import { InboxHub, type Subscriber, type SubscriberEvents } from "./inbox-hub.js";
import { runOnEach, type ScriptClient, ScriptRunner } from "./script-runner.js";
import { ServerFailoverGuard } from "./server-failover-guard.js";
import { within } from "./timeout.js";

/** Makes a connection that listens, and reports to `events`. What it makes belongs to the store. */
export type OpenSubscriber = (events: SubscriberEvents) => Subscriber | Promise<Subscriber>;

/** Opens inboxes; see `Store.inbox` and `Store.shardInbox`. */
export interface Inboxes {
  open(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;
  /** Present for a cluster. */
  openShard?(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;
  close(): Promise<void>;
}

/** What differs from one client library to the next. */
export interface ClientParts {
  readonly kind: string;
  readonly client: ScriptClient;
  /** Makes what opens inboxes; it calls `onReconnect` when they hear again after a loss. */
  inboxes(onReconnect: () => void): Inboxes;
  /** Calls `onBack` whenever the caller's client is ready again after a loss; answers with what takes that back. */
  watch(onBack: () => void): () => void;
  readonly terms: Terms;
  /** As `Store.server`. */
  readonly server?: Store["server"] | undefined;
  /** As `Store.clientTimeouts`. */
  readonly clientTimeouts?: NonNullable<Store["clientTimeouts"]> | undefined;
}

/** What has to be so for a grant of this store to count. */
export interface Terms {
  /** How to ask the server whether it may grant locks; without it, it always may. */
  readonly grace?: Grace | undefined;
  /** How many replicas must have a renewal for it to count; without it, none. */
  readonly replicas?: Replicas | undefined;
}

/** Inboxes over one connection that listens. */
export function overOneSubscriber(openSubscriber: OpenSubscriber): ClientParts["inboxes"] {
  return (onReconnect) => new InboxHub(openSubscriber, onReconnect);
}

/** Inboxes over a connection to each of several servers. */
function overNodes(nodes: ClusterNodes): ClientParts["inboxes"] {
  return (onReconnect) => new ClusterHub(nodes, onReconnect);
}

interface SharedInboxes {
  readonly inboxes: Inboxes;
  /** What each of its users does when it hears again after a loss. */
  readonly users: Set<() => void>;
}

const sharedByClient = new WeakMap<object, SharedInboxes>();

/**
 * Inboxes over the same connections for all stores on one client: a program that makes a Holdfast again and again, as when a
 * development server reloads it, has one subscriber connection and not one more each time. The last one to close closes it.
 */
function overShared(client: object, make: ClientParts["inboxes"]): ClientParts["inboxes"] {
  return (onReconnect) => {
    const user = (): void => onReconnect();
    const shared = sharedByClient.get(client) ?? newShared(client, make);
    shared.users.add(user);
    const { inboxes } = shared;
    return {
      open: (channel, onMessage, timeoutMs) => inboxes.open(channel, onMessage, timeoutMs),
      ...(inboxes.openShard === undefined ? {} : { openShard: inboxes.openShard.bind(inboxes) }),
      async close() {
        if (!shared.users.delete(user) || shared.users.size > 0) return;
        sharedByClient.delete(client);
        await inboxes.close();
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

/** Inboxes over one connection that listens, for all stores on `client`. */
export function overSharedSubscriber(client: object, openSubscriber: OpenSubscriber): ClientParts["inboxes"] {
  return overShared(client, overOneSubscriber(openSubscriber));
}

/** Inboxes over a connection to each server of a cluster that is needed, for all stores on `client`. */
export function overSharedNodes(client: object, nodes: ClusterNodes): ClientParts["inboxes"] {
  return overShared(client, overNodes(nodes));
}

/** The store port over the parts of one client library. */
export function clientStore({
  kind,
  client: calls,
  inboxes,
  watch,
  terms,
  server,
  clientTimeouts,
}: ClientParts): Store {
  const client: ScriptClient = { ...calls, cure: () => clientTimeouts?.()?.cure };
  const { grace, replicas } = terms;
  if (replicas !== undefined && client.acknowledged === undefined) {
    throw new UnsupportedError(
      "replicas",
      `The option \`replicas\` needs WAIT on the connection that ran a script, which cannot be had of this ${kind} client.`,
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
      // A function of its own: the same listener may be given twice.
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

/** Longest wait for an answer that is no script's of ours. */
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
