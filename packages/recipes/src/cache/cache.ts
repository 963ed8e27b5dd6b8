/**
 * A cache shared by processes that loads each value once: the first caller that finds no value loads it under a lease,
 * and all other callers, in this process and elsewhere, get that value.
 *
 * The lease saves loads; it does not guarantee mutual exclusion. A value may be loaded twice, which wastes work but
 * does no harm. The only guarantee is that an old value never replaces a newer one. The script that fills the entry
 * enforces this guarantee.
 */
import type { Holdfast } from "holdfast";
import { internalsOf, type Session } from "holdfast/internal";
import { checkBytes, nameOf } from "../names.js";
import { type CacheTrace, cacheTracing, traced } from "../tracing.js";
import { resolveWait, type WaitOptions } from "../wait-options.js";
import type { CallerFacts } from "./callers.js";
import { Flight } from "./flight.js";
import type { Loader } from "./lease.js";
import { type CacheOptions, type ResolvedCache, resolveCache } from "./options.js";
import { CacheProtocol } from "./protocol.js";

/** Options of `Cache.get`. */
export interface CacheGetOptions extends WaitOptions {
  /**
   * Longest wait for a load in another process. After that, this process loads the value itself, with one load at a
   * time, and does not store it. `waitMs` does not limit the wait for a load in this process. Milliseconds, 0 or more;
   * Infinity waits forever.
   * @default 10_000
   */
  readonly waitMs?: number | undefined;
  /** Aborts this call, which rejects with the signal's reason. The load continues while other callers wait for it. */
  readonly signal?: AbortSignal | undefined;
}

/** The flights of each session, by entry key. Caches with the same name share them. */
const flights = new WeakMap<Session, Map<string, Flight<unknown>>>();

/** A cache shared by processes that loads each value once. Create one for each kind of value and reuse it. */
export class Cache<Value> {
  /** Name of the cache. */
  readonly name: string;
  readonly #session: Session;
  readonly #prefix: string;
  readonly #options: ResolvedCache<Value>;
  readonly #flights: Map<string, Flight<unknown>>;

  /** Use `cache` to create one. @internal */
  constructor(holdfast: Holdfast, name: string, options: ResolvedCache<Value>) {
    const { session, prefix } = internalsOf(holdfast, name);
    this.name = name;
    this.#session = session;
    this.#prefix = prefix;
    this.#options = options;
    this.#flights = flights.get(session) ?? new Map<string, Flight<unknown>>();
    flights.set(session, this.#flights);
  }

  /**
   * Returns the value of a key, from the cache or from a loader.
   *
   * - Fresh value: returns it after one round trip.
   * - Stale value: returns it after one round trip. One process loads a new value in the background.
   * - No value: one process loads it. The others wait for its value for up to `waitMs`, then load it alone.
   *
   * If a load fails, its caller gets the error, and one of the waiting callers tries next. After `attemptsMax`
   * failures, all callers get the last error. If the server does not reply, each process loads the value itself.
   *
   * @param key   1 to 255 bytes
   * @param load  loads the value; if it throws, the caller that passed it gets its error unchanged
   * @returns the value. Callers in one process that waited together get the same object, so do not modify it
   * @throws the error that `load` threw here; otherwise one of the following
   * @throws CacheLoadError  loads elsewhere failed `attemptsMax` times
   * @throws StoreError      the server did not reply, and `whenUnavailable` is `"reject"`
   * @throws ClosedError     this Holdfast was closed
   * @throws TypeError, RangeError  an invalid argument; nothing was sent
   * @throws the reason of `signal`, if it aborts the call
   */
  async get(key: string, load: Loader<Value>, options: CacheGetOptions = {}): Promise<Value> {
    const name = this.#nameOf(key);
    if (typeof load !== "function") throw new TypeError(`load must be a function; got ${typeof load}`);
    const { waitMs, signal } = resolveWait(options);
    this.#session.assertOpen(name);
    signal?.throwIfAborted();
    const untilMs = this.#session.runtime.monotonicMs() + waitMs;
    const begin = (): CacheTrace => ({ kind: "cache", lockName: name, cacheName: this.name, outcome: undefined });
    const ask = (trace: CacheTrace | undefined): Promise<Value> =>
      new Promise((resolve, reject) => {
        try {
          signal?.throwIfAborted();
          this.#join(name, { load, untilMs, signal, trace, resolve, reject });
        } catch (error) {
          // A subscriber to the start event has closed this Holdfast or aborted the call.
          if (trace !== undefined) trace.outcome = signal?.aborted ? "aborted" : "failed";
          reject(error);
        }
      });
    return traced(cacheTracing, begin, ask);
  }

  /**
   * Removes the value of a key. A load that is already running does not store its result, but still returns it to
   * callers in its process that asked before the load began.
   *
   * A `get` that begins after this call has resolved never gets an older value, as long as the server replies.
   *
   * @param key  1 to 255 bytes
   * @throws StoreError  outcome unknown: the old value may be returned until it expires; calling this again is safe
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  an invalid key; nothing was sent
   */
  async invalidate(key: string): Promise<void> {
    const name = this.#nameOf(key);
    const protocol = new CacheProtocol(this.#session, this.#prefix, name);
    await protocol.invalidate();
    // Later callers start a new flight, which asks the server again.
    this.#flights.delete(protocol.key);
  }

  #join(name: string, facts: CallerFacts<Value>): void {
    const protocol = new CacheProtocol(this.#session, this.#prefix, name);
    const { key } = protocol;
    // The cast relies on all users of a cache name agreeing on the type of its values.
    let flight = this.#flights.get(key) as Flight<Value> | undefined;
    if (flight === undefined) {
      flight = new Flight({ session: this.#session, protocol, options: this.#options }, (landed) => {
        if (this.#flights.get(key) === (landed as Flight<unknown>)) this.#flights.delete(key);
      });
      this.#flights.set(key, flight as Flight<unknown>);
    }
    flight.join(facts);
  }

  #nameOf(key: string): string {
    return nameOf(this.name, checkBytes("key", key));
  }
}

/**
 * Returns the cache with the given name. Sends nothing.
 *
 * @param holdfast  the object returned by `createHoldfast`, on one server, behind Sentinel or on a cluster
 * @param name      what the cache contains, such as the kind of object; 1 to 255 bytes
 * @throws TypeError, RangeError  an invalid argument
 * @throws UnsupportedError       this Holdfast uses several independent servers
 *
 * @example
 * const users = cache<User>(holdfast, "users", { freshMs: 60_000, staleMs: 600_000 });
 * const user = await users.get("42", ({ signal }) => loadUser("42", signal));
 * await users.invalidate("42"); // after a change
 */
export function cache<Value>(holdfast: Holdfast, name: string, options: CacheOptions<Value> = {}): Cache<Value> {
  return new Cache(holdfast, checkBytes("name", name), resolveCache(options));
}
