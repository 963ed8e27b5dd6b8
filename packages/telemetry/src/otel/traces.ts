/**
 * Spans of locks: one for the acquire and one for the hold. Both are children of the span that was active when the lock
 * was requested. The hold links to the acquire.
 *
 * Holdfast propagates no context. It uses the context manager that the application has registered. The work under a
 * lock runs in the caller's context, so its spans are siblings of the hold, not its children.
 */
import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type {
  AcquireEvent,
  GrantEvent,
  LockEvent,
  LostEvent,
  ReleaseEvent,
  RenewEvent,
  UngrantedEvent,
  WaitEvent,
} from "holdfast";
import { checkKnown, idOf, show } from "holdfast/internal";
import { errorTypeOf } from "../error-type.js";
import { GROUP_OPTIONS, type GroupOptions, Groups } from "../groups.js";
import { listen } from "../listening.js";
import { OpenCalls } from "../open-calls.js";
import { RecipeTracing } from "./recipe-traces.js";
import { serverAttributes } from "./server-attributes.js";

/** Options of `startTraces`: the tracer, and how lock names become groups. */
export interface TracesOptions extends GroupOptions {
  /** The tracer for the spans. @default `trace.getTracer("holdfast")` of `@opentelemetry/api` */
  readonly tracer?: Tracer | undefined;
}

interface OpenAcquire {
  readonly span: Span;
  readonly parent: Context;
  readonly server: Attributes;
}

interface Held {
  readonly span: Span;
  leases: number;
}

/**
 * Starts to trace all locks of this process. Spans contain the name of the lock; metrics do not.
 *
 * - `holdfast.acquire`: from the call to the grant, or to the end of the call without one
 * - `holdfast.hold`: from the grant to the end of the lease
 * - `holdfast.once`: a call to `once`
 * - `holdfast.lead`: a term of `lead`
 *
 * @returns a function that stops tracing and ends the open spans
 * @throws TypeError, RangeError  invalid option
 */
export function startTraces(options: TracesOptions = {}): () => void {
  const { tracer = trace.getTracer("holdfast"), ...groups } = checkKnown(options, ["tracer", ...GROUP_OPTIONS]);
  if (typeof tracer?.startSpan !== "function") {
    throw new TypeError(`tracer must be an OpenTelemetry Tracer; got ${show(tracer)}`);
  }
  const shared = new Groups(groups);
  const tracing = new LockTracing(tracer, shared);
  const recipes = new RecipeTracing(tracer, shared);
  const stop = listen({
    ...recipes.handlers,
    "holdfast:grant": (event: GrantEvent) => tracing.granted(event),
    "holdfast:ungranted": (event: UngrantedEvent) => tracing.ungranted(event),
    "holdfast:lost": (event: LostEvent) => tracing.lost(event),
    "holdfast:release": (event: ReleaseEvent) => tracing.released(event),
    "holdfast:renew": (event: RenewEvent) => tracing.renewed(event),
    "holdfast:wait": (event: WaitEvent) => tracing.waits(event),
    "holdfast:acquire": (event: AcquireEvent) => tracing.asked(event),
  });
  return () => {
    stop();
    tracing.end();
    recipes.end();
  };
}

class LockTracing {
  readonly #tracer: Tracer;
  readonly #groups: Groups;
  readonly #asked = new OpenCalls<OpenAcquire>(({ span }) => void span.addEvent("waiting"));
  readonly #held = new Map<string, Held>();

  constructor(tracer: Tracer, groups: Groups) {
    this.#tracer = tracer;
    this.#groups = groups;
  }

  asked(event: AcquireEvent): void {
    const parent = context.active();
    const server = serverAttributes(event.server);
    const attributes = { ...this.#about(event), ...server };
    const span = this.#tracer.startSpan("holdfast.acquire", { attributes }, parent);
    this.#asked.begin(event, { span, parent, server });
  }

  waits(event: WaitEvent): void {
    this.#asked.wait(event);
  }

  granted(event: GrantEvent): void {
    const asked = this.#asked.end(event.call)?.value;
    if (asked !== undefined) {
      asked.span.setAttributes({ "holdfast.lock.token": event.token });
      endAcquire(asked.span, "granted", event.waitedMs);
    }
    const held = this.#held.get(idOf(event));
    if (held !== undefined) {
      held.leases += 1;
      return;
    }
    const attributes = { ...this.#about(event), ...asked?.server, "holdfast.lock.token": event.token };
    const links = asked === undefined ? [] : [{ context: asked.span.spanContext() }];
    const span = this.#tracer.startSpan("holdfast.hold", { attributes, links }, asked?.parent ?? context.active());
    this.#held.set(idOf(event), { span, leases: 1 });
  }

  ungranted({ call, outcome, waitedMs, error }: UngrantedEvent): void {
    const span = this.#asked.end(call)?.value.span;
    if (span === undefined) return;
    if (error !== undefined) span.setAttributes({ "error.type": errorTypeOf(error) });
    // Only an unknown outcome is a failure. A lock that is held or paused, or a call that gave up, is not.
    if (outcome === "unknown") fail(span, error);
    endAcquire(span, outcome, waitedMs);
  }

  renewed(event: RenewEvent): void {
    const span = this.#held.get(idOf(event))?.span;
    if (event.error === undefined) span?.addEvent("renewed");
    else
      span?.addEvent("at_risk", { "error.type": errorTypeOf(event.error), "holdfast.valid_for_ms": event.validForMs });
  }

  lost(event: LostEvent): void {
    const span = this.#take(event);
    if (span === undefined) return;
    if (event.reason === "closed") {
      span.setAttributes({ "holdfast.outcome": "closed" });
    } else {
      span.addEvent("lost", { "holdfast.reason": event.reason });
      span.setAttributes({ "holdfast.outcome": "lost", "holdfast.reason": event.reason });
      span.setStatus({ code: SpanStatusCode.ERROR, message: `lost: ${event.reason}` });
    }
    span.end();
  }

  released(event: ReleaseEvent): void {
    const held = this.#held.get(idOf(event));
    if (held !== undefined && held.leases > 1) {
      held.leases -= 1;
      return;
    }
    const span = this.#take(event);
    span?.setAttributes({ "holdfast.outcome": event.outcome });
    if (event.outcome === "lost")
      span?.setStatus({ code: SpanStatusCode.ERROR, message: "lost before it was released" });
    span?.end();
  }

  /** Ends all open spans. Call it after unsubscribing, when their real ends can no longer be seen. */
  end(): void {
    for (const { value } of this.#asked.open()) value.span.end();
    for (const { span } of this.#held.values()) span.end();
    this.#held.clear();
  }

  #take(event: LockEvent & { readonly token: number }): Span | undefined {
    const held = this.#held.get(idOf(event));
    this.#held.delete(idOf(event));
    return held?.span;
  }

  #about({ kind, lockName, mode }: LockEvent): Attributes {
    return {
      "holdfast.lock.name": lockName,
      "holdfast.lock.group": this.#groups.of(lockName),
      "holdfast.lock.kind": kind,
      ...(mode === undefined ? {} : { "holdfast.lock.mode": mode }),
      "db.system.name": "redis",
    };
  }
}

function endAcquire(span: Span, outcome: string, waitedMs: number): void {
  span.setAttributes({ "holdfast.outcome": outcome, "holdfast.waited_ms": waitedMs });
  span.end();
}

function fail(span: Span, error: unknown): void {
  span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
}
