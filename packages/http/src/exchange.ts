/**
 * Decides for a request with an `Idempotency-Key` whether the handler is called, or which response is sent instead. It
 * does not depend on the framework.
 *
 * The handler is the work of `once`, and its response is the value. An adapter captures the response without sending
 * it. The response is sent after `once` has recorded it, so that a client that has seen it gets the same one for a
 * retry. Adapters handle headers and bodies, but not keys.
 */

import {
  jsonCodec,
  OnceBlockedError,
  type OnceLease,
  OnceMismatchError,
  type OnceOptions,
  type OncePolicy,
  OnceRunningError,
  OnceUnavailableError,
  once,
} from "@holdfast/recipes";
import { ClosedError, EvictionError, type Holdfast, type LockError, ProtocolError, StoreError } from "holdfast";
import { internalsOf, show } from "holdfast/internal";
import { type IdempotencyOutcome, publishIdempotency } from "./events.js";
import { fingerprintOfRequest, onceKeyOf, type RequestBody, shortened } from "./fingerprint.js";
import { readKeyHeader } from "./header.js";
import { type IdempotencyOptions, type ResolvedIdempotency, resolveIdempotency } from "./options.js";
import { type Answer, type Problem, problemAnswer } from "./problems.js";
import { answerCodec, replayAnswer, type Taken, textBytesMax } from "./recorded.js";

/** Errors that mean that nothing can be recorded now. */
const UNAVAILABLE = [StoreError, EvictionError, ProtocolError, ClosedError];

/** A request, as an adapter describes it. */
export interface HttpRequest {
  readonly method: string;
  /** The route pattern, such as `/payments/:id`. */
  readonly route: string;
  /** Path and query. */
  readonly target: string;
  /** The value of each line of the header `Idempotency-Key`. */
  readonly keyHeader: readonly string[];
  readonly contentType: string;
  readonly acceptEncoding: string;
  /**
   * Returns the body of the request.
   *
   * @param bytesMax  the maximum number of bytes to read
   * @throws BodyTooLarge  no parser has read the body, and it is larger than `bytesMax`
   * @throws Error  the body was already read and is no longer available
   */
  readonly body: (bytesMax: number) => Promise<RequestBody>;
  /** Aborts when the client no longer waits for the response. */
  readonly signal: AbortSignal;
}

/**
 * Values of the header `Idempotency-Status`: `unstored` if the response may not have been recorded, `ignored` if it was
 * not meant to be kept.
 */
export type Mark = "unstored" | "ignored";

/** What the adapter does next. */
export type Verdict =
  /** Call the handler without protection. */
  | { readonly kind: "pass"; readonly mark?: Mark }
  /** Send this response. */
  | { readonly kind: "answer"; readonly answer: Answer }
  /** Send the captured response of the handler. */
  | { readonly kind: "send"; readonly mark?: Mark }
  /** Do nothing, because no client waits for a response. */
  | { readonly kind: "gone" };

/** The handler has destroyed the response before it ended. */
export class AnswerDestroyed extends Error {
  constructor() {
    super("the answer was destroyed before it ended");
    this.name = "AnswerDestroyed";
  }
}

/** No parser has read the body of the request, and it is larger than `requestBytesMax`. */
export class BodyTooLarge extends Error {
  constructor() {
    super("the body of the request is larger than requestBytesMax");
    this.name = "BodyTooLarge";
  }
}

/** The leases of requests, by the request object of the framework. The adapters' `leaseOf` reads them. */
export const leases: WeakMap<object, OnceLease> = new WeakMap();

/** The outcome of a request, for the event. */
interface Ending {
  readonly outcome: IdempotencyOutcome;
  readonly status?: number | undefined;
  readonly error?: unknown;
}

/** The part of a middleware that does not depend on the framework. */
export class Idempotency<Request> {
  /** The checked options with defaults. */
  readonly options: ResolvedIdempotency<Request>;
  readonly #holdfast: Holdfast;

  /**
   * @throws TypeError, RangeError  invalid argument
   * @throws UnsupportedError       the Holdfast uses several independent servers
   */
  constructor(holdfast: Holdfast, options: IdempotencyOptions<Request>) {
    // Checks now, so that a mistake shows when the service starts and not as a 500 response to each request.
    internalsOf(holdfast, "idempotency");
    this.#holdfast = holdfast;
    this.options = resolveIdempotency(options);
  }

  /** Whether requests with this method need a key. All other methods are idempotent or only read. */
  concerns(method: string): boolean {
    return method === "POST" || method === "PATCH";
  }

  /**
   * Calls the handler unless a request with the same key has been handled or is being handled.
   *
   * @param request  the request object of the framework, for `scope` and `fingerprint`
   * @param handle   calls the handler and captures its response without sending it; called at most once
   * @returns what the adapter does next
   * @throws whatever `scope`, `fingerprint` and `body` throw; the handler was not called
   * @throws whatever `handle` throws, except AnswerDestroyed
   */
  async carryOut(http: HttpRequest, request: Request, handle: (lease: OnceLease) => Promise<Taken>): Promise<Verdict> {
    const header = readKeyHeader(http.keyHeader, this.options.strict);
    if (header === "missing" && !this.options.required) return { kind: "pass" };
    if (typeof header === "string") return this.#refuse({ http }, header);
    const scope = this.#scopeOf(request);
    const call: Call = { http, key: onceKeyOf(http.method, http.route, header.key), scope };
    const fingerprint = await this.#fingerprintOf(http, request).catch(unlessTooLarge);
    if (fingerprint === undefined) return this.#refuse(call, "too-large");

    const run: Run = { isCalled: false };
    const work = async (lease: OnceLease): Promise<Taken> => {
      run.isCalled = true;
      run.taken = await handle(lease);
      return run.taken;
    };
    try {
      const done = await once<Taken | undefined>(this.#holdfast, call.key as string, work, {
        ...this.#onceOptions(run),
        ...(scope === undefined ? {} : { scope }),
        fingerprint,
        signal: http.signal,
      });
      return done.replayed ? this.#replay(call, done.value) : this.#send(call, run, undefined);
    } catch (error) {
      if (run.taken !== undefined) return this.#send(call, run, error);
      if (!run.isCalled) return this.#refused(call, error);
      this.#publish(call, { outcome: "released", error });
      if (error instanceof AnswerDestroyed) return { kind: "gone" };
      throw error;
    }
  }

  #onceOptions(run: Run): OnceOptions<Taken | undefined> {
    const { leaseMs, keepMs, maxHoldMs, whenRunning, keep, replayHeaders, bodyBytesMax } = this.options;
    return {
      ...{ leaseMs, keepMs, maxHoldMs, strictFingerprint: true },
      ...(whenRunning === "reject" ? { whenRunning } : { whenRunning: "wait", waitMs: whenRunning.waitMs }),
      valueBytesMax: textBytesMax(bodyBytesMax),
      codec: answerCodec(replayHeaders),
      savedCodec: jsonCodec,
      after() {
        run.policy = run.taken === undefined ? "release" : policyOf(keep(statusOf(run.taken)));
        return run.policy;
      },
    };
  }

  #scopeOf(request: Request): string | undefined {
    if (this.options.scope === undefined) return undefined;
    const scope: unknown = this.options.scope(request);
    const text = typeof scope === "number" && Number.isFinite(scope) ? String(scope) : scope;
    if (typeof text === "string" && text !== "") return shortened(text);
    throw new TypeError(`scope must return a non-empty string or a number; got ${show(scope)}`);
  }

  async #fingerprintOf(http: HttpRequest, request: Request): Promise<string> {
    const { fingerprint } = this.options;
    const body: RequestBody =
      fingerprint === undefined
        ? await http.body(this.options.requestBytesMax)
        : { kind: "value", value: await fingerprint(request) };
    return fingerprintOfRequest({ ...http, body });
  }

  #replay(call: Call, kept: Taken | undefined): Verdict {
    if (kept?.kind !== "whole") return this.#refuse(call, "result-unavailable");
    const answer = replayAnswer(kept.answer, call.http.acceptEncoding);
    this.#publish(call, { outcome: "replayed", status: answer.status });
    return { kind: "answer", answer };
  }

  /** @param error  why the response may not have been recorded; undefined if it was */
  #send(call: Call, { taken, policy }: Run, error: unknown): Verdict {
    const { kind } = taken as Taken;
    const status = statusOf(taken as Taken);
    if (error !== undefined && policy !== "release") {
      this.#publish(call, { outcome: "unstored", status, error });
      return { kind: "send", mark: "unstored" };
    }
    if (kind === "passing") {
      this.#publish(call, { outcome: "ignored", status, error });
      return { kind: "send", mark: "ignored" };
    }
    this.#publish(call, { outcome: policy === "release" ? "released" : "carried-out", status, error });
    return { kind: "send" };
  }

  /** Returns the verdict for an error that occurred before the handler was called. */
  #refused(call: Call, error: unknown): Verdict {
    if (call.http.signal.aborted && error === call.http.signal.reason) return { kind: "gone" };
    if (error instanceof OnceMismatchError) return this.#refuse(call, "mismatch");
    if (error instanceof OnceRunningError) return this.#refuse(call, "running", { retryAfterS: 1 });
    if (error instanceof OnceBlockedError) return this.#refuse(call, "blocked");
    if (error instanceof OnceUnavailableError) return this.#refuse(call, "result-unavailable");
    if (UNAVAILABLE.some((kind) => error instanceof kind)) {
      return this.#unavailable(call, error as LockError);
    }
    throw error;
  }

  #unavailable(call: Call, error: LockError): Verdict {
    if (this.options.whenUnavailable === "pass") {
      this.#publish(call, { outcome: "unstored", error });
      return { kind: "pass", mark: "unstored" };
    }
    const resumesInMs = error instanceof StoreError ? (error.resumesInMs ?? 0) : 0;
    return this.#refuse(call, "unavailable", { retryAfterS: Math.max(1, Math.ceil(resumesInMs / 1_000)), error });
  }

  #refuse(
    call: Call,
    problem: Problem,
    { retryAfterS, error }: { readonly retryAfterS?: number; readonly error?: unknown } = {},
  ): Verdict {
    const answer = problemAnswer(problem, retryAfterS);
    this.#publish(call, { outcome: problem, status: answer.status, error });
    return { kind: "answer", answer };
  }

  #publish({ http: { method, route }, key, scope }: Call, { outcome, status, error }: Ending): void {
    publishIdempotency({ method, route, key, scope, outcome, status, error });
  }
}

/** A request with the key and scope of its `once` call. */
interface Call {
  readonly http: HttpRequest;
  readonly key?: string | undefined;
  readonly scope?: string | undefined;
}

/** The progress of the handler. */
interface Run {
  isCalled: boolean;
  taken?: Taken | undefined;
  policy?: OncePolicy | undefined;
}

function unlessTooLarge(error: unknown): undefined {
  if (!(error instanceof BodyTooLarge)) throw error;
}

/** @throws TypeError  the option `keep` has returned an invalid value, for example a promise */
function policyOf(keep: unknown): OncePolicy {
  if (keep === "block") return "block";
  if (typeof keep === "boolean") return keep ? "keep" : "release";
  // An unhandled rejection of a returned promise would end the process.
  void Promise.resolve(keep).catch(() => {});
  throw new TypeError(
    `keep must return true, false or "block"; got ${show(keep)}. The key is now blocked: resolve it with resolveOnce`,
  );
}

function statusOf(taken: Taken): number {
  return taken.kind === "whole" ? taken.answer.status : taken.status;
}
