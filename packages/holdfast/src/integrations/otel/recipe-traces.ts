/** Spans of what recipes do: one for each call of `once`, and one for each term of `lead`. */
import { type Attributes, context, type Span, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import type { ServerAddress } from "../../internal.js";
import { errorTypeOf } from "../telemetry/error-type.js";
import type { Groups } from "../telemetry/groups.js";
import type { Handlers } from "../telemetry/listening.js";
import { serverAttributes } from "./server-attributes.js";

/** What recipes tell; see recipes/tracing.ts. */
interface RecipeTrace {
  readonly kind: string;
  readonly lockName?: string | undefined;
  readonly token?: number | undefined;
  readonly term?: number | undefined;
  readonly attempt?: number | undefined;
  readonly server?: ServerAddress | undefined;
  readonly outcome?: string | undefined;
  /** What `once` has found. */
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Ways of `once` to say that nothing was run here; all else is a failure. */
const ANSWERS: Readonly<Record<string, string>> = {
  ERR_LOCK_ONCE_RUNNING: "in_flight",
  ERR_LOCK_ONCE_MISMATCH: "mismatch",
  ERR_LOCK_ONCE_BLOCKED: "blocked",
  ERR_LOCK_ONCE_FAILED: "failed",
  ERR_LOCK_ONCE_UNAVAILABLE: "replayed",
};

/** See the file header. */
export class RecipeTracing {
  readonly #tracer: Tracer;
  readonly #groups: Groups;
  readonly #open = new Map<object, Span>();
  /** What to do with the messages of their channels. */
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

  /** Nobody will hear how they end. */
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
      // That somebody else has it, or that it has failed before, is an answer.
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
