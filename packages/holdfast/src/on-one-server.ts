/**
 * The parts that every Holdfast on one server, cluster or Sentinel group has: its session, and the protocol of its
 * mutexes.
 */
import { clientRecords, renewing } from "./client-record/client-record.js";
import type { MakeLease } from "./core/acquire.js";
import { UnsupportedError } from "./core/errors.js";
import { evictionQuestion, Guard } from "./core/guard.js";
import type { Hold } from "./core/hold.js";
import type { SlotInboxes } from "./core/inbox.js";
import { checkName, lockKeys, mappedKeys } from "./core/keys.js";
import { Lease } from "./core/lease.js";
import { LocalQueues } from "./core/local-queue.js";
import type { ResolvedOptions } from "./core/options.js";
import type { Runtime } from "./core/runtime.js";
import { Session } from "./core/session.js";
import type { Grace, Store } from "./core/store.js";
import { type CheckedOptions, checkLockOptions, type HoldfastOptions, type LockOptions } from "./holdfast-options.js";
import { echoOn } from "./inbox/echo.js";
import { MutexProtocol } from "./mutex/protocol.js";
import { readMemoryPolicy, warnOfHiddenPolicy } from "./server/eviction.js";
import { failoverGrace } from "./server/lineage.js";
import type { GrantConditions } from "./stores/client-store.js";

/** The parts of a Holdfast on one server. */
export interface OnOneServer {
  readonly session: Session;
  readonly defaults: ResolvedOptions;
  readonly localQueues: LocalQueues;
  /** Returns a factory that creates mutexes of the class `Mutex`. */
  factoryOf<Mutex>(Mutex: MutexClass<Mutex>): (name: string, options?: LockOptions) => Mutex;
  /**
   * Returns the protocol of the mutex with this name.
   *
   * @param kind  the kind that errors and events show
   * @throws TypeError, RangeError  an invalid name or option
   */
  mutexProtocolOf(kind: string, name: string, options?: LockOptions): MutexProtocol;
}

/** A class of mutexes. */
export type MutexClass<Mutex> = new (
  session: Session,
  protocol: MutexProtocol,
  defaults: ResolvedOptions,
  make: MakeLease<Lease>,
  localQueues: LocalQueues,
) => Mutex;

/** How to open a session. */
export interface SessionOptions {
  readonly runtime: Runtime;
  readonly options: CheckedOptions;
  /**
   * Whether the user passed `store`. The author of a custom store knows the server, so Holdfast does not warn if the
   * server hides its memory policy.
   */
  readonly isOwnStore: boolean;
  /** Maximum lease of a provisional grant, in ms. */
  readonly handOffMs?: number | undefined;
  /** Needed if the store may be a cluster. */
  readonly slotInboxes?: typeof SlotInboxes | undefined;
}

/** Creates the session of a Holdfast on `store`. The last Holdfast to close closes the store. Sends nothing. */
export function onOneServer(store: Store, facts: SessionOptions): OnOneServer {
  const { runtime, options, isOwnStore, handOffMs, slotInboxes } = facts;
  const { prefix, clientName, commandTimeoutMs, allowEviction, defaults } = options;
  const closeStore = shareStore(store);
  const clientId = runtime.newClientId();
  const own = clientRecords(store, { prefix, clientId, clientName, timeoutMs: commandTimeoutMs, runtime });
  const onHidden = isOwnStore ? () => {} : warnOfHiddenPolicy;
  const read = (): ReturnType<typeof readMemoryPolicy> => readMemoryPolicy(store, commandTimeoutMs);
  const guard = new Guard([...(allowEviction ? [] : [evictionQuestion({ read, onHidden })]), own.question], runtime);
  const records = renewing(own.records, guard);
  const echo = echoOn(store, isOwnStore);
  const parts = { store, runtime, prefix, clientId, commandTimeoutMs, records, guard, closeStore, echo };
  const session = new Session({ ...parts, handOffMs, slotInboxes });
  const localQueues = new LocalQueues(session);
  const leaseOn = (hold: Hold): Lease => new Lease(hold);
  // Programs often call `mutex(name)` for each acquire, so this function does as little as possible.
  const mutexProtocolOf = (kind: string, name: string, lockOptions?: LockOptions): MutexProtocol => {
    checkName(name);
    const checked = lockOptions === undefined ? undefined : checkLockOptions(lockOptions);
    const key = checked?.key;
    const keys = key === undefined ? lockKeys(prefix, "mutex", name) : mappedKeys(prefix, "mutex", key);
    return new MutexProtocol({ ...checked, store, name, keys, inbox: session.inboxOf(keys.tag) }, kind);
  };
  return {
    session,
    defaults,
    localQueues,
    factoryOf: (Mutex) => (name, lockOptions) =>
      new Mutex(session, mutexProtocolOf("mutex", name, lockOptions), defaults, leaseOn, localQueues),
    mutexProtocolOf,
  };
}

/** Returns the conditions under which a grant counts. @param inspectSlot  needed if the server may be in a cluster */
export function conditionsOf(
  { prefix = "hf", failoverGrace: grace = "auto", replicas }: HoldfastOptions,
  inspectSlot?: Grace["inspectSlot"],
): GrantConditions {
  return { grace: failoverGrace(grace, prefix, inspectSlot), replicas };
}

/**
 * Checks that `store` supports the options, and returns it.
 *
 * @throws UnsupportedError  `failoverGrace` or `replicas` with a store or client that does not support it
 */
export function checkConditions(store: Store, { failoverGrace: grace, replicas }: HoldfastOptions): Store {
  if (grace === "strict" && store.lineageKey?.("") === undefined) {
    throw new UnsupportedError(
      "failoverGrace",
      'The option `failoverGrace: "strict"` needs a client: Holdfast cannot check the server behind a custom store.',
    );
  }
  if (replicas !== undefined && store.confirmsGrants !== true) {
    throw new UnsupportedError(
      "replicas",
      "The option `replicas` needs a client; it does not work with a custom store.",
    );
  }
  return store;
}

/**
 * How many open Holdfasts use each store. All copies of this library in the process share the count, including a second
 * installed copy and a module that was loaded again.
 */
const USERS = Symbol.for("holdfast.storeUsers");
const inProcess = globalThis as { [USERS]?: WeakMap<Store, number> };
const users = inProcess[USERS] ?? new WeakMap<Store, number>();
inProcess[USERS] = users;

/**
 * Registers one more Holdfast on this store. @returns a function that unregisters it; the last call closes the store
 */
export function shareStore(store: Store): () => Promise<void> {
  users.set(store, (users.get(store) ?? 0) + 1);
  return async () => {
    const left = (users.get(store) ?? 1) - 1;
    users.set(store, left);
    if (left === 0) await store.close();
  };
}
