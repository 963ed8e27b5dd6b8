/**
 * A cache that processes share, in which each value is loaded once: whoever finds none loads it under a lease, and all others, in
 * this process and elsewhere, get what it has loaded.
 *
 * The lease is an optimization and no exclusion: when in doubt a value is loaded twice, which is waste and no harm. What must hold is
 * that an old value never takes the place of a newer one, and the script that fills the entry sees to it.
 */
import type { Holdfast } from "../../index.js";
import { internalsOf, type Session } from "../../internal.js";
import { checkBytes, nameOf } from "../names.js";
import { type CacheTrace, cacheTracing, traced } from "../tracing.js";
import { resolveWait, type WaitOptions } from "../wait-options.js";
import type { CallerFacts } from "./callers.js";
import { Flight } from "./flight.js";
import type { Loader } from "./lease.js";
import { type CacheOptions, type ResolvedCache, resolveCache } from "./options.js";
import { CacheProtocol } from "./protocol.js";

/** How long one call may wait for other processes. */
export interface CacheGetOptions extends WaitOptions {
  /**
   * Longest wait for another process that loads: then the value is loaded here as well, at most once in this process, and not
   * kept. A load in this process is waited for to its end. Milliseconds, 0 or more; Infinity never gives up.
   * @default 10_000
   */
  readonly waitMs?: number | undefined;
  /** Ends this call, and rejects with its reason. The load goes on while others want it. */
  readonly signal?: AbortSignal | undefined;
}

/** Of each client, the entries that are being asked for: caches of one name share them. */
const flights = new WeakMap<Session, Map<string, Flight<unknown>>>();

/** See the file header. Make one for each kind of value, and keep it. */
export class Cache<Value> {
  readonly name: string;
  readonly #session: Session;
  readonly #prefix: string;
  readonly #options: ResolvedCache<Value>;
  readonly #flights: Map<string, Flight<unknown>>;

  /** Comes from `cache`. @internal */
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
   * The value of that key; from the cache, or loaded by whoever asks first.
   *
   * - Fresh: one round trip.
   * - Stale: the same, and one process anywhere loads it anew in the background.
   * - Absent: one process anywhere loads it. The others wait for what it has found, `waitMs` at most, and then load alone.
   *
   * If a load fails, its caller gets the error, and one of those who wait tries it; after `attemptsMax` failures all get the last
   * error. If the server does not answer, each process loads by itself.
   *
   * @param key   1 to 255 bytes
   * @param load  its error is passed on untouched to the caller whose it is
   * @returns callers of one process who waited together get the same object: do not change it
   * @throws what `load` threw here; otherwise
   * @throws CacheLoadError  loads elsewhere failed `attemptsMax` times
   * @throws StoreError      the server did not answer, and `whenUnavailable` says to reject
   * @throws ClosedError     this Holdfast was closed
   * @throws TypeError, RangeError  a wrong argument; nothing was sent
   * @throws the reason of `signal`
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
          // Whoever heard of the start has closed this Holdfast, or aborted the call.
          if (trace !== undefined) trace.outcome = signal?.aborted ? "aborted" : "failed";
          reject(error);
        }
      });
    return traced(cacheTracing, begin, ask);
  }

  /**
   * Forgets the value of that key. What is being loaded goes to those who asked before, and is not kept.
   *
   * A `get` that begins after this has resolved, and asks the server, gets nothing from before.
   *
   * @param key  1 to 255 bytes
   * @throws StoreError  the server did not answer: the old value may still be given, until it is stale or invalidated again
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  a wrong key; nothing was sent
   */
  async invalidate(key: string): Promise<void> {
    const name = this.#nameOf(key);
    const protocol = new CacheProtocol(this.#session, this.#prefix, name);
    await protocol.invalidate();
    // Whoever asks from now on asks anew.
    this.#flights.delete(protocol.key);
  }

  #join(name: string, facts: CallerFacts<Value>): void {
    const protocol = new CacheProtocol(this.#session, this.#prefix, name);
    const { key } = protocol;
    // Caches of one name are of one type, as far as all who share it agree.
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
 * The cache of that name.
 *
 * @param holdfast  what `createHoldfast` returned, on one server, behind Sentinel or on a cluster
 * @param name      what is cached, such as the kind of object; 1 to 255 bytes
 * @throws TypeError, RangeError  a wrong argument
 * @throws UnsupportedError       that Holdfast is on several independent servers
 */
export function cache<Value>(holdfast: Holdfast, name: string, options: CacheOptions<Value> = {}): Cache<Value> {
  return new Cache(holdfast, checkBytes("name", name), resolveCache(options));
}
