/**
 * Calls of recipes from their start to their end, on the tracing channels of `node:diagnostics_channel`, with the context of each as
 * the message. Nothing is built or sent while nobody listens.
 */
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";

/** `tracing:holdfast:once:…`: a call of `once`. Node adds `result` or `error`. */
export interface OnceTrace {
  readonly kind: "once";
  /** With its scope; undefined until the arguments were checked. */
  lockName: string | undefined;
  /** Of the attempt that has run here; undefined if none has. */
  token: number | undefined;
  attempt: number | undefined;
}

/** `tracing:holdfast:lead:…`: a term of `lead`, from before its work to after its release. Node adds `result` or `error`. */
export interface LeadTrace {
  readonly kind: "election";
  readonly lockName: string;
  readonly term: number;
  /** How it ended, as it is told to `stopped`. */
  outcome: string | undefined;
}

/** See `OnceTrace`. */
export const onceTracing: TracingChannel<unknown, OnceTrace> = tracingChannel("holdfast:once");
/** See `LeadTrace`. */
export const leadTracing: TracingChannel<unknown, LeadTrace> = tracingChannel("holdfast:lead");

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
