/** What `createHoldfast` and the factories can be told, and the checks: once, at the door. */
import type { CloseOptions } from "./core/closing.js";
import { checkClientName, checkKey, checkPrefix, show, unknownOption } from "./core/keys.js";
import type { ExportedLease } from "./core/lease.js";
import type { AcquireOptions } from "./core/options.js";
import { checkWhole, DEFAULTABLE, DEFAULTS, type ResolvedOptions, resolve } from "./core/options.js";
import type { Store } from "./core/store.js";
import type { FailoverGrace } from "./server/lineage.js";

/** How to reach the server, and defaults for every acquire. */
export interface HoldfastOptions extends Omit<AcquireOptions, "signal"> {
  /** A client that you made and that you close: ioredis, iovalkey, node-redis or GLIDE. This, `store` or `redlock`. */
  readonly redis?: object | undefined;

  /**
   * Clients or stores of 3, 5, 7 or 9 independent servers, none of which is a replica of another: `redlock(name)` is held on
   * a majority of them, and is the only kind there is. In place of `redis` and `store`. All who share its locks give the
   * same servers.
   */
  readonly redlock?: readonly object[] | undefined;

  /**
   * A store of another making, such as `embedded()`. In place of `redis`. Several Holdfasts may be made on one: it is closed
   * when the last of them closes.
   */
  readonly store?: Store | undefined;

  /**
   * Makes a connection that only listens, for clients that cannot be duplicated (GLIDE, pools). Holdfast closes
   * it. Without one such a client asks again and again instead of being told. With `redlock` it is given the place of the
   * server in that array, from 0.
   */
  readonly subscriber?: ((server: number) => unknown) | undefined;

  /**
   * What all keys and channels begin with; services share locks only if it is the same. 1 to 64 printable
   * ASCII characters without spaces and braces.
   * @default "hf"
   */
  readonly prefix?: string | undefined;

  /**
   * Whether to acquire from a server that may evict keys (`maxmemory` above 0 with any `maxmemory-policy` but
   * `noeviction`). It may evict a lock that is held, and then grants it again; so by default every acquire from such a
   * server is refused. True also saves the question, which goes out beside the first acquire and after a reconnect.
   * @default false
   */
  readonly allowEviction?: boolean | undefined;

  /**
   * What to do when the server behind a client has changed: a replica that is promoted may lack the last grants. With
   * `"auto"` nothing new is granted by a server that took over, or came back from its disk, for as long as the longest
   * lease in use; holders keep what they hold, release and renew meanwhile, and waits go on. `"strict"` also waits on a
   * server without any trace of locks that was started less than the longest lease ago: it may have forgotten them.
   * `"off"` grants at once, and so may grant a lock twice. All processes must say the same. In a cluster that goes for
   * each shard by itself, and a slot that moves makes nobody wait. Of no account for a `store`, for which `"strict"` is refused.
   * @default "auto"
   */
  readonly failoverGrace?: FailoverGrace | undefined;

  /**
   * How many replicas must have a grant or a renewal for it to count (`WAIT`), and how long they may take. Too few, and what
   * was granted is given back and the acquire rejects with StoreError; a renewal is tried again. It makes it rarer that a
   * failover loses a grant, and never makes it impossible. It costs one more request for each grant, and whatever else is sent
   * on the connection waits behind. `timeoutMs` is less than `commandTimeoutMs`; of a renewal it is shortened to a twelfth
   * of the lease. Not with GLIDE, a pool or a `store`.
   * @default none
   */
  readonly replicas?: { readonly atLeast: number; readonly timeoutMs: number } | undefined;

  /** Shown, with host and process id, to whoever waits for a lock that this client holds. At most 256 bytes. */
  readonly clientName?: string | undefined;

  /**
   * Longest wait for the answer to one request. Longer rides out a slow server; shorter finds out sooner that
   * it does not answer. Whole milliseconds, 10 to 60 000. With `redlock` it is that of each server, and an acquire
   * waits for none of them longer than a sixth of its `leaseMs`.
   * @default 2_000
   */
  readonly commandTimeoutMs?: number | undefined;
}

/** What a lock can be told when it is made. */
export interface LockOptions {
  /**
   * The key that holds the lock, in place of the one made from the name: to share it with clients that do
   * `SET key value NX PX`. 1 to 512 bytes.
   */
  readonly key?: string | undefined;

  /**
   * Longest time before a waiter asks again, because clients of other libraries send no message when they release. A shorter time
   * notices their release sooner; a longer one sends fewer requests: each process asks once in that time for all its callers, and each
   * caller with `fairness: "strict"`. Clients of this library notify each other whatever it is. Whole milliseconds, 10 to 5000; more
   * than 3000 has no effect.
   * @default 1_000 with `key`, else 3_000
   */
  readonly recheckMs?: number | undefined;
}

/** How soon a waiter asks again by itself where other clients share the lock. */
const SHARED_RECHECK_MS = 1_000;
/** The largest value that is accepted. Waiters ask again after 3 s in any case. */
const LONGEST_RECHECK_MS = 5_000;

const OWN_OPTIONS = [
  "redis",
  "store",
  "redlock",
  "subscriber",
  "prefix",
  "clientName",
  "commandTimeoutMs",
  "allowEviction",
  "failoverGrace",
  "replicas",
];

/**
 * Checks what `createHoldfast` was given and fills in the defaults.
 *
 * @throws TypeError, RangeError  a wrong option; the message names it, its range and what came
 */
export function checkOptions(options: HoldfastOptions): {
  prefix: string;
  clientName: string;
  commandTimeoutMs: number;
  allowEviction: boolean;
  defaults: ResolvedOptions;
} {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`createHoldfast needs an object with redis, store or redlock; got ${show(options)}`);
  }
  const methods = Object.entries({ redis: ["evalsha", "evalSha", "customCommand"], store: ["onReconnect"] });
  for (const [option, names] of methods) {
    if (!names.some((name) => typeof Reflect.get(options, name) === "function")) continue;
    throw new TypeError(
      `createHoldfast takes an object of options; got a ${option === "redis" ? "client" : "store"} itself: write createHoldfast({ ${option}: … })`,
    );
  }
  const { prefix = "hf", clientName = "", commandTimeoutMs = 2_000, allowEviction = false } = options;
  checkPrefix(prefix);
  checkClientName(clientName);
  checkWhole("commandTimeoutMs", commandTimeoutMs, 10, 60_000);
  if (typeof allowEviction !== "boolean") {
    throw new TypeError(`allowEviction must be true or false; got ${show(allowEviction)}`);
  }
  if (!["auto", "strict", "off", undefined].includes(options.failoverGrace)) {
    throw new TypeError(`failoverGrace must be "auto", "strict" or "off"; got ${show(options.failoverGrace)}`);
  }
  if (options.replicas !== undefined) checkReplicas(options.replicas, commandTimeoutMs);
  if (options.subscriber !== undefined && typeof options.subscriber !== "function") {
    throw new TypeError(`subscriber must be a function that makes a connection; got ${show(options.subscriber)}`);
  }
  checkKnown<object>(options, [...OWN_OPTIONS, ...DEFAULTABLE] as never[]);
  const given = Object.entries(options).filter(([option]) => DEFAULTABLE.includes(option));
  return {
    prefix,
    clientName,
    commandTimeoutMs,
    allowEviction,
    defaults: resolve(Object.fromEntries(given), { ...DEFAULTS, signal: undefined, amount: 1 }),
  };
}

function checkReplicas(replicas: unknown, commandTimeoutMs: number): void {
  if (replicas === null || typeof replicas !== "object") {
    throw new TypeError(`replicas must be an object with atLeast and timeoutMs; got ${show(replicas)}`);
  }
  const { atLeast, timeoutMs } = checkKnown(replicas as { atLeast?: unknown; timeoutMs?: unknown }, [
    "atLeast",
    "timeoutMs",
  ]);
  checkWhole("replicas.atLeast", atLeast, 1, 100);
  checkWhole("replicas.timeoutMs", timeoutMs, 1, commandTimeoutMs - 1);
}

/**
 * The options of a factory, if they are an object with known options only.
 *
 * @throws TypeError  they are not; the message names the option that does not exist, and those that do
 */
export function checkKnown<Options extends object>(
  options: Options | undefined,
  known: readonly (keyof Options & string)[],
): Partial<Options> {
  if (options === undefined) return {};
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options must be an object with ${known.join(", ")}; got ${show(options)}`);
  }
  for (const option of Object.keys(options)) {
    if (!(known as readonly string[]).includes(option)) {
      throw unknownOption(option, known);
    }
  }
  return options;
}

/**
 * The options of a mutex.
 *
 * @throws TypeError, RangeError  a wrong option; the message names it, its range and what came
 */
export function checkLockOptions(options: LockOptions): LockOptions {
  const { key, recheckMs } = checkKnown(options, ["key", "recheckMs"]);
  if (recheckMs !== undefined) checkWhole("recheckMs", recheckMs, 10, LONGEST_RECHECK_MS);
  if (key === undefined) return recheckMs === undefined ? {} : { recheckMs };
  return { key: checkKey(key), recheckMs: recheckMs ?? SHARED_RECHECK_MS };
}

/**
 * For factories without options: what is given to them was meant for a verb, and would be ignored.
 *
 * @throws TypeError  something was given
 */
export function checkNoMore(takes: string, rest: readonly unknown[]): void {
  const extra = rest.find((value) => value !== undefined);
  if (extra === undefined) return;
  throw new TypeError(`${takes} and nothing else, since options are those of acquire and the like; got ${show(extra)}`);
}

/** The grace of a close. @throws TypeError, RangeError */
export function graceOf(options: CloseOptions | undefined): number | undefined {
  const { graceMs } = checkKnown(options, ["graceMs"]);
  if (graceMs !== undefined) checkWhole("graceMs", graceMs, 0, 86_400_000);
  return graceMs;
}

/** @throws TypeError, RangeError  unless it is what `lease.export()` returned, as far as can be seen */
export function checkExported(exported: ExportedLease): ExportedLease {
  if (exported === null || typeof exported !== "object" || exported.version !== 1) {
    throw new TypeError(`adopt needs what lease.export() returned, version 1; got ${show(exported)}`);
  }
  const { owner, token, reservedTo = token, leaseMs, renew, maxHoldMs, mode, slots } = exported;
  if (typeof owner !== "string" || !/^[!-~]{1,4096}$/.test(owner)) {
    throw new TypeError(`owner must be the owner of a lease; got ${show(owner)}`);
  }
  checkWhole("token", token, 1, Number.MAX_SAFE_INTEGER);
  checkWhole("reservedTo", reservedTo, token, Number.MAX_SAFE_INTEGER);
  checkWhole("leaseMs", leaseMs, 100, 31_536_000_000);
  if (typeof renew !== "boolean") throw new TypeError(`renew must be true or false; got ${show(renew)}`);
  if (maxHoldMs !== undefined) checkWhole("maxHoldMs", maxHoldMs, 1, 31_536_000_000);
  if (mode !== undefined && mode !== "read" && mode !== "write")
    throw new TypeError(`mode must be "read" or "write"; got ${show(mode)}`);
  if (slots !== undefined && !(Array.isArray(slots) && slots.every((slot) => Number.isSafeInteger(slot) && slot >= 0)))
    throw new TypeError(`slots must be an array of whole numbers; got ${show(slots)}`);
  return exported;
}
