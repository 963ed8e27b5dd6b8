/**
 * Options of `createHoldfast` and of the lock factories, and their validation. Options are checked only here, on entry.
 */
import type { CloseOptions } from "./core/closing.js";
import { checkClientName, checkKey, checkPrefix, show, unknownOption } from "./core/keys.js";
import type { ExportedLease } from "./core/lease.js";
import type { AcquireOptions } from "./core/options.js";
import {
  checkLeaseMs,
  checkOneOf,
  checkWhole,
  DEFAULTABLE,
  DEFAULTS,
  type ResolvedOptions,
  resolve,
} from "./core/options.js";
import type { Retention } from "./core/retention.js";
import type { Store } from "./core/store.js";
import type { FailoverGrace } from "./server/lineage.js";

/** How to reach the server, and the defaults for every acquire. */
export interface HoldfastOptions extends Omit<AcquireOptions, "signal"> {
  /**
   * Your client: ioredis, iovalkey, node-redis or GLIDE. Holdfast uses it and never closes it. Pass exactly one of
   * `redis`, `store` and `redlock`.
   */
  readonly redis?: object | undefined;

  /**
   * Clients or stores of 3, 5, 7 or 9 independent servers, none of which is a replica of another. Replaces `redis` and
   * `store`, and makes only `redlock(name)` available. All processes that share these locks need the same servers.
   */
  readonly redlock?: readonly object[] | undefined;

  /**
   * A custom store, such as `embedded()`. Replaces `redis`. Several Holdfasts may share one store; the last one to
   * close closes it.
   */
  readonly store?: Store | undefined;

  /**
   * A function that creates the subscriber connection, for clients that cannot be duplicated (GLIDE, pools). Holdfast
   * closes this connection. Without this option, waiters on such a client poll the server. The function's argument is
   * the server's index in the `redlock` array, or 0 without `redlock`.
   */
  readonly subscriber?: ((server: number) => unknown) | undefined;

  /**
   * Prefix of all keys and channels. Services share locks only if they use the same prefix. 1 to 64 printable ASCII
   * characters, without spaces or braces.
   * @default "hf"
   */
  readonly prefix?: string | undefined;

  /**
   * Whether to acquire from a server that may evict keys (`maxmemory` above 0 with any `maxmemory-policy` except
   * `noeviction`). Such a server may evict a held lock and then grant it again, so by default Holdfast refuses every
   * acquire. If true, Holdfast does not check the server.
   * @default false
   */
  readonly allowEviction?: boolean | undefined;

  /**
   * What to do after a failover or a server restart. A promoted replica may lack the most recent grants.
   *
   * - `"auto"`: a server that took over, or that restarted from its disk, grants no new locks for as long as the
   *   longest lease in use. Meanwhile, holders can renew and release their locks, and waiters keep waiting.
   * - `"strict"`: the same also applies to a server that has no trace of locks and whose uptime is shorter than the
   *   longest lease, because it may have lost its locks.
   * - `"off"`: the server grants immediately; two holders of the same lock are possible.
   *
   * All processes must use the same value. In a cluster, the rule applies to each shard separately, and moving a slot
   * causes no wait. A custom `store` ignores `"auto"` and `"off"`, and rejects `"strict"`. With `redlock`, `"strict"`
   * always applies, and the other values are rejected.
   * @default "auto"
   */
  readonly failoverGrace?: FailoverGrace | undefined;

  /**
   * How many replicas must acknowledge each grant and renewal (`WAIT`), and how long to wait for them. If too few
   * acknowledge a grant, Holdfast releases the lock, and the acquire rejects with StoreError. If too few acknowledge a
   * renewal, Holdfast retries it. The option makes it less likely, but not impossible, that a failover loses a grant.
   * Each grant costs one more request, and other requests on the same connection wait behind it. `atLeast` is 1 to 100.
   * `timeoutMs` is at least 1 and less than `commandTimeoutMs`. Not available with GLIDE, a pool, `store` or `redlock`.
   * @default none
   */
  readonly replicas?: { readonly atLeast: number; readonly timeoutMs: number } | undefined;

  /**
   * A name for this client. While the client holds a lock, waiters see the name in `error.holder`, and `holdfast ls`
   * and the console show it too. At most 256 bytes.
   */
  readonly clientName?: string | undefined;

  /**
   * How long to wait for the reply to one request. A shorter timeout detects an unresponsive server sooner. Whole
   * milliseconds, 10 to 60,000. With `redlock`, it applies to each server, and an acquire uses a sixth of its `leaseMs`
   * instead if that is shorter.
   * @default 2_000
   */
  readonly commandTimeoutMs?: number | undefined;
}

/** Options of the factories `mutex` and `reentrantMutex`. */
export interface LockOptions {
  /**
   * The key that holds the lock, instead of the key derived from the name. Use it to share the lock with clients that
   * run `SET key value NX PX`. 1 to 512 bytes.
   */
  readonly key?: string | undefined;

  /**
   * Maximum time between two checks by a waiter. A shorter time lets waiters notice sooner when another library
   * releases the lock, because other libraries send no messages. A longer time saves requests. Holdfast clients always
   * notify each other. Whole milliseconds, 10 to 5,000; values above 3,000 count as 3,000.
   * @default 1_000 with `key`, else 3_000
   */
  readonly recheckMs?: number | undefined;

  /**
   * The result of `retain` from `holdfast/retain`. Keeps the lock for this process after a release, until another
   * process wants it. If this process crashes meanwhile, other processes wait until the lease expires. Cannot be
   * combined with `key`.
   * @default undefined: a release frees the lock immediately
   */
  readonly retain?: Retention | undefined;
}

/** Default of `recheckMs` for a lock that other client libraries share. */
const SHARED_RECHECK_MS = 1_000;
/** The largest `recheckMs` accepted. Values above 3 s count as 3 s, because waiters re-check after 3 s in any case. */
const LONGEST_RECHECK_MS = 5_000;

const OWN_OPTIONS = ["prefix", "clientName", "commandTimeoutMs", "allowEviction", "failoverGrace", "replicas"];

/** The options of `createHoldfast` that every Holdfast has, with their defaults filled in. */
export interface CheckedOptions {
  readonly prefix: string;
  readonly clientName: string;
  readonly commandTimeoutMs: number;
  readonly allowEviction: boolean;
  /** The defaults of every acquire. */
  readonly defaults: ResolvedOptions;
}

/**
 * Checks the options of `createHoldfast` and fills in the defaults.
 *
 * @param ways  the options that say how to reach the server
 * @throws TypeError, RangeError  an invalid option; the message names the option, its range and the value received
 */
export function checkOptions(options: HoldfastOptions, ways: readonly (keyof HoldfastOptions)[]): CheckedOptions {
  const {
    prefix = "hf",
    clientName = "",
    commandTimeoutMs = 2_000,
    allowEviction = false,
    failoverGrace = "auto",
  } = options;
  checkPrefix(prefix);
  checkClientName(clientName);
  checkWhole("commandTimeoutMs", commandTimeoutMs, 10, 60_000);
  checkOneOf("allowEviction", allowEviction, true, false);
  checkOneOf("failoverGrace", failoverGrace, "auto", "strict", "off");
  if (options.replicas !== undefined) checkReplicas(options.replicas, commandTimeoutMs);
  if (options.subscriber !== undefined && typeof options.subscriber !== "function") {
    throw new TypeError(`subscriber must be a function that creates a connection; got ${show(options.subscriber)}`);
  }
  checkKnown<object>(options, [...ways, ...OWN_OPTIONS, ...DEFAULTABLE] as never[]);
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
 * Checks that the options of a factory are an object with known options only, and returns them.
 *
 * @throws TypeError  not an object, or an unknown option; the message names it and lists the known options
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
 * Checks the options of a mutex and fills in the defaults.
 *
 * @throws TypeError, RangeError  an invalid option; the message names the option, its range and the value received
 */
export function checkLockOptions(options: LockOptions): LockOptions {
  const { key, recheckMs, retain } = checkKnown(options, ["key", "recheckMs", "retain"]);
  if (recheckMs !== undefined) checkWhole("recheckMs", recheckMs, 10, LONGEST_RECHECK_MS);
  if (retain !== undefined) {
    if (key !== undefined) throw new TypeError(`retain cannot be used with key; got key ${show(key)}`);
    if (retain?.keep === undefined) throw new TypeError(`retain must come from retain(); got ${show(retain)}`);
  }
  if (key === undefined) return { recheckMs, retain };
  return { key: checkKey(key), recheckMs: recheckMs ?? SHARED_RECHECK_MS };
}

/**
 * Rejects extra arguments to a factory that takes no options. They were probably meant for a method such as `acquire`,
 * and would otherwise be ignored silently.
 *
 * @throws TypeError  an extra argument was given
 */
export function checkNoMore(takes: string, rest: readonly unknown[]): void {
  const extra = rest.find((value) => value !== undefined);
  if (extra === undefined) return;
  throw new TypeError(`${takes} and nothing else; pass options to acquire and the other methods; got ${show(extra)}`);
}

/** Checks the options of `close` and returns `graceMs`. @throws TypeError, RangeError  an invalid option */
export function graceOf(options: CloseOptions | undefined): number | undefined {
  const { graceMs } = checkKnown(options, ["graceMs"]);
  if (graceMs !== undefined) checkWhole("graceMs", graceMs, 0, 86_400_000);
  return graceMs;
}

/**
 * Checks, as far as possible, that the value is a result of `lease.export()`.
 *
 * @throws TypeError, RangeError  a field is missing or invalid
 */
export function checkExported(exported: ExportedLease): ExportedLease {
  if (exported === null || typeof exported !== "object" || exported.version !== 1) {
    throw new TypeError(`adopt needs the result of lease.export(), version 1; got ${show(exported)}`);
  }
  const { owner, token, reservedTo = token, leaseMs, renew, maxHoldMs, mode = "read", slots } = exported;
  if (typeof owner !== "string" || !/^[!-~]{1,4096}$/.test(owner)) {
    throw new TypeError(`owner must be a lease's owner id; got ${show(owner)}`);
  }
  checkWhole("token", token, 1, Number.MAX_SAFE_INTEGER);
  checkWhole("reservedTo", reservedTo, token, Number.MAX_SAFE_INTEGER);
  checkLeaseMs(leaseMs);
  checkOneOf("renew", renew, true, false);
  if (maxHoldMs !== undefined) checkWhole("maxHoldMs", maxHoldMs, 1, 31_536_000_000);
  checkOneOf("mode", mode, "read", "write");
  if (slots !== undefined && !(Array.isArray(slots) && slots.every((slot) => Number.isSafeInteger(slot) && slot >= 0)))
    throw new TypeError(`slots must be an array of whole numbers; got ${show(slots)}`);
  return exported;
}
