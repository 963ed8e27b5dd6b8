/** Spans of recipes: one for each call to `once`, and one for each term of `lead`. */
import { type Attributes, context, type Span, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import type { ServerAddress } from "holdfast/internal";
import { errorTypeOf } from "../error-type.js";
import type { Groups } from "../groups.js";
import type { Handlers } from "../listening.js";
import { serverAttributes } from "./server-attributes.js";

/** The context that recipes publish on their tracing channels; see recipes/tracing.ts. */
interface RecipeTrace {
  readonly kind: string;
  readonly lockName?: string | undefined;
  readonly token?: number | undefined;
  readonly term?: number | undefined;
  readonly attempt?: number | undefined;
  readonly server?: ServerAddress | undefined;
  readonly outcome?: string | undefined;
  /** The value that the call resolved to. Absent if it rejected. */
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Outcomes of `once` by error code, for errors that mean that nothing ran here. All other errors are failures. */
const ANSWERS: Readonly<Record<string, string>> = {
  ERR_LOCK_ONCE_RUNNING: "in_flight",
  ERR_LOCK_ONCE_MISMATCH: "mismatch",
  ERR_LOCK_ONCE_BLOCKED: "blocked",
  ERR_LOCK_ONCE_FAILED: "failed",
  ERR_LOCK_ONCE_UNAVAILABLE: "replayed",
};

/** Creates the spans of recipes from the messages on their tracing channels. */
export class RecipeTracing {
  readonly #tracer: Tracer;
  readonly #groups: Groups;
  readonly #open = new Map<object, Span>();
  /** Message handlers for the channels of recipes. */
  readonly handlers: Handlers;

  constructor(tracer: Tracer, groups: Groups) {
    this.#tracer = tracer;
    this.#groups = groups;
    const ended = (trace: RecipeTrace): void => this.#ended(trace);
    this.handlers = {
      "tracing:holdfast:once:asyncEnd": ended,
      "tracing:holdfast:lead:asyncEnd": ended,
      "tracing:holdfast:once:start": (trace: RecipeTrace) => this.#began("holdfast.once", trace),
      "tracing:holdfast:lead:start": (trace: RecipeTrace) => this.#began("holdfast.lead", trace),
    };
  }

  /** Ends all open spans. Call it after unsubscribing, when their real ends can no longer be seen. */
  end(): void {
    for (const span of this.#open.values()) span.end();
    this.#open.clear();
  }

  #began(name: string, trace: RecipeTrace): void {
    this.#open.set(trace, this.#tracer.startSpan(name, {}, context.active()));
  }

  #ended(trace: RecipeTrace): void {
    const span = this.#open.get(trace);
    this.#open.delete(trace);
    if (span === undefined) return;
    const outcome = trace.kind === "once" ? onceOutcomeOf(trace) : trace.outcome;
    span.setAttributes({ ...this.#about(trace), ...(outcome === undefined ? {} : { "holdfast.outcome": outcome }) });
    if ("error" in trace) {
      span.setAttributes({ "error.type": errorTypeOf(trace.error) });
      // If a call to `once` finds that the work is running elsewhere or has already failed, the call itself has not
      // failed.
      if (trace.kind !== "once" || trace.token !== undefined || outcome === "unknown") fail(span, trace.error);
    } else if (outcome === "lost") {
      span.setStatus({ code: SpanStatusCode.ERROR, message: "lost" });
    }
    span.end();
  }

  #about({ kind, lockName, token, term, attempt, server }: RecipeTrace): Attributes {
    const number = token ?? term;
    return {
      "holdfast.lock.kind": kind,
      "db.system.name": "redis",
      ...(lockName === undefined
        ? {}
        : { "holdfast.lock.name": lockName, "holdfast.lock.group": this.#groups.of(lockName) }),
      ...serverAttributes(server),
      ...(number === undefined ? {} : { "holdfast.lock.token": number }),
      ...(attempt === undefined ? {} : { "holdfast.once.attempt": attempt }),
    };
  }
}

function onceOutcomeOf({ token, error, ...trace }: RecipeTrace): string {
  if (token !== undefined) return "executed";
  if (error === undefined) return "result" in trace ? "replayed" : "unknown";
  return ANSWERS[errorTypeOf(error)] ?? "unknown";
}

function fail(span: Span, error: unknown): void {
  span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
}
