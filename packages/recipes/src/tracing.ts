/**
 * Traces calls of recipes on the tracing channels of `node:diagnostics_channel`. The message of each event is the trace
 * object of its call. Tracing costs nothing unless someone subscribes.
 */
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";
import type { ServerAddress } from "holdfast/internal";

/** `tracing:holdfast:once:…`: a call of `once`. Node adds `result` or `error`. */
export interface OnceTrace {
  readonly kind: "once";
  /** Scope and key of the call; undefined until the arguments are validated. */
  lockName: string | undefined;
  /** Fencing token of the attempt that ran here; undefined if none did. */
  token: number | undefined;
  /** Number of the attempt that ran here; undefined if none did. */
  attempt: number | undefined;
  /** Address of the server; undefined until the arguments are validated, or if the client library does not say. */
  server: ServerAddress | undefined;
}

/**
 * `tracing:holdfast:lead:…`: a term of `lead`, from before its work to after its release. Node adds `result` or
 * `error`.
 */
export interface LeadTrace {
  readonly kind: "election";
  /** Name of the election. */
  readonly lockName: string;
  /** Fencing token of the term. */
  readonly term: number;
  /** Address of the server; undefined if the client library does not say. */
  readonly server: ServerAddress | undefined;
  /** How the term ended, as passed to `stopped`; undefined until then. */
  outcome: string | undefined;
}

/**
 * How a call of `Cache.get` ended.
 *
 * - `fresh`, `stale`: the value was in the cache
 * - `loaded`: the caller's loader returned the value under the lease
 * - `alone`: the caller's loader returned the value without a lease, for example because the server did not reply or
 *   the wait took too long
 * - `joined`: another caller, in this process or elsewhere, loaded the value
 * - `failed`, `aborted`: the caller got no value
 */
export type CacheOutcome = "fresh" | "stale" | "loaded" | "alone" | "joined" | "failed" | "aborted";

/**
 * `tracing:holdfast:cache:…`: a call of `get` with valid arguments. Node adds `result`, which is the value, or `error`.
 */
export interface CacheTrace {
  readonly kind: "cache";
  /** Name of the entry: the cache's name and the key. */
  readonly lockName: string;
  /** Name of the cache. */
  readonly cacheName: string;
  /** How the call ended; undefined until then. */
  outcome: CacheOutcome | undefined;
}

/** Channel for calls of `once`. */
export const onceTracing: TracingChannel<unknown, OnceTrace> = tracingChannel("holdfast:once");
/** Channel for terms of `lead`. */
export const leadTracing: TracingChannel<unknown, LeadTrace> = tracingChannel("holdfast:lead");
/** Channel for calls of `Cache.get`. */
export const cacheTracing: TracingChannel<unknown, CacheTrace> = tracingChannel("holdfast:cache");

/**
 * Runs `call`, and traces it if the channel has subscribers. `call` gets the trace object, or undefined without
 * subscribers.
 */
export function traced<Trace extends object, Value>(
  tracing: TracingChannel<unknown, Trace>,
  begin: () => Trace,
  call: (trace: Trace | undefined) => Promise<Value>,
): Promise<Value> {
  if (!tracing.hasSubscribers) return call(undefined);
  const trace = begin();
  return tracing.tracePromise(() => call(trace), trace);
}
