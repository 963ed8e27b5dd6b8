/**
 * Calls of recipes from their start to their end, on the tracing channels of `node:diagnostics_channel`, with the context of each as
 * the message. Nothing is built or sent while nobody listens.
 */
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";
import type { ServerAddress } from "../internal.js";

/** `tracing:holdfast:once:…`: a call of `once`. Node adds `result` or `error`. */
export interface OnceTrace {
  readonly kind: "once";
  /** With its scope; undefined until the arguments were checked. */
  lockName: string | undefined;
  /** Of the attempt that has run here; undefined if none has. */
  token: number | undefined;
  attempt: number | undefined;
  /** Where it is asked for; undefined until the arguments were checked, and if the client library does not say. */
  server: ServerAddress | undefined;
}

/** `tracing:holdfast:lead:…`: a term of `lead`, from before its work to after its release. Node adds `result` or `error`. */
export interface LeadTrace {
  readonly kind: "election";
  readonly lockName: string;
  readonly term: number;
  /** Undefined if the client library does not say. */
  readonly server: ServerAddress | undefined;
  /** How it ended, as it is told to `stopped`. */
  outcome: string | undefined;
}

/**
 * How a caller of a cache got its value: `fresh` or `stale`, since it was there; `loaded`, by its own loader under the lease; `alone`,
 * by its own loader without one, as when the server does not answer or it has waited for too long; `joined`, after waiting for a load
 * of another caller, here or elsewhere. Or how it got none: `failed` or `aborted`.
 */
export type CacheOutcome = "fresh" | "stale" | "loaded" | "alone" | "joined" | "failed" | "aborted";

/**
 * `tracing:holdfast:cache:…`: a call of `get`, unless it is refused before it asks for anything. Node adds `result` or `error`; the
 * result is the value itself.
 */
export interface CacheTrace {
  readonly kind: "cache";
  /** Of the entry: the cache's own and the key. */
  readonly lockName: string;
  readonly cacheName: string;
  /** Undefined until it ends. */
  outcome: CacheOutcome | undefined;
}

/** See `OnceTrace`. */
export const onceTracing: TracingChannel<unknown, OnceTrace> = tracingChannel("holdfast:once");
/** See `LeadTrace`. */
export const leadTracing: TracingChannel<unknown, LeadTrace> = tracingChannel("holdfast:lead");
/** See `CacheTrace`. */
export const cacheTracing: TracingChannel<unknown, CacheTrace> = tracingChannel("holdfast:cache");

/** Calls it, and tells of it if anybody listens. */
export function traced<Trace extends object, Value>(
  tracing: TracingChannel<unknown, Trace>,
  begin: () => Trace,
  call: (trace: Trace | undefined) => Promise<Value>,
): Promise<Value> {
  if (!tracing.hasSubscribers) return call(undefined);
  const trace = begin();
  return tracing.tracePromise(() => call(trace), trace);
}
