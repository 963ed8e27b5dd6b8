/** What the integrations for HTTP may be asked for, its defaults, and the checks. The same for every framework. */
import type { Filled } from "../../internal.js";
import { checkKnown, checkLeaseMs, checkWhole, show } from "../../internal.js";

/** How requests with an `Idempotency-Key` are treated. `Request` is what the framework calls a request. */
export interface IdempotencyOptions<Request = unknown> {
  /** Whether a POST or PATCH without the header is refused with 400. With false it is carried out, each time. @default false */
  readonly required?: boolean | undefined;

  /**
   * Part of the key, such as the tenant or the user: nobody gets the answer that another one was given. A text that is not empty, or a
   * number. Without it all callers share their keys.
   */
  readonly scope?: ((request: Request) => string | number) | undefined;

  /** How long an answer is kept. Tell your clients. Whole milliseconds, `leaseMs` to 31,536,000,000. @default 86_400_000, a day */
  readonly keepMs?: number | undefined;

  /**
   * Lease of a request that is being carried out, which is renewed: as long after its process has died it can be tried again. Whole
   * milliseconds, 100 to 31,536,000,000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * Longest time for a handler: then its lease ends although its process lives, and the next try is carried out. It bounds a handler
   * that never answers. Whole milliseconds, 100 to 31,536,000,000, or Infinity.
   * @default 120_000
   */
  readonly maxHoldMs?: number | undefined;

  /** What a second request gets while the first is being carried out: 409 at once, or its answer, if it comes within `waitMs`. @default "reject" */
  readonly whenRunning?: "reject" | { readonly waitMs: number } | undefined;

  /**
   * Whether an answer with that status is kept and given again. False: the next try is carried out. `"block"`: nobody knows what has
   * happened, and tries get 409 until `resolveOnce`; so it is too where this throws or says anything else.
   * @default everything below 500 but 401, 403, 408, 409, 425 and 429
   */
  readonly keep?: ((status: number) => boolean | "block") | undefined;

  /**
   * The headers of an answer that are kept with it; `content-encoding` always is. Cookies, dates, tracing headers and those of a single
   * connection cannot be.
   * @default ["content-type", "location", "etag"]
   */
  readonly replayHeaders?: readonly string[] | undefined;

  /**
   * A longer answer is sent, but not kept: it is recorded that the request was carried out, and later tries get 409. Whole bytes, 0 to
   * 8,388,608.
   * @default 262_144
   */
  readonly bodyBytesMax?: number | undefined;

  /**
   * The most that is read of the body of a request which nobody has read yet; a longer one is refused with 413. Who expects more puts
   * a parser with its own limit before. Whole bytes, 0 to 1,073,741,824.
   * @default 1_048_576
   */
  readonly requestBytesMax?: number | undefined;

  /** What happens when Redis cannot be asked: 503, or the handler is called without protection. @default "reject" */
  readonly whenUnavailable?: "reject" | "pass" | undefined;

  /** Whether the header must be a quoted String, as the draft has it. @default false */
  readonly strict?: boolean | undefined;

  /**
   * What stands for the body of a request where it is compared with the first one's, such as the names and digests of files that were
   * uploaded. Needed only where the body was read by something that does not leave it.
   * @default the body: JSON whatever the order of its properties, forms by their fields, all else by its bytes
   */
  readonly fingerprint?: ((request: Request) => unknown) | undefined;
}

/** The options with their defaults, checked. */
export type ResolvedIdempotency<Request> = Filled<Omit<IdempotencyOptions<Request>, "scope" | "fingerprint">> &
  Pick<IdempotencyOptions<Request>, "scope" | "fingerprint">;

const NAMES: readonly (keyof IdempotencyOptions)[] = [
  "required",
  "scope",
  "keepMs",
  "leaseMs",
  "maxHoldMs",
  "whenRunning",
  "keep",
  "replayHeaders",
  "bodyBytesMax",
  "requestBytesMax",
  "whenUnavailable",
  "strict",
  "fingerprint",
];
const YEAR_MS = 31_536_000_000;
const NOT_KEPT: readonly number[] = [401, 403, 408, 409, 425, 429];

/** Of one request, one connection or one customer's browser: never of an answer that is given again. */
const NEVER_REPLAYED =
  /^(set-cookie2?|date|age|server-timing|traceparent|tracestate|tracecontext|baggage|b3|x-b3-.*|uber-trace-id|x-datadog-.*|x-amzn-(trace-id|requestid)|x-amz-request-id|x-cloud-trace-context|(x-)?(request|correlation|trace)-id|sentry-trace|connection|keep-alive|upgrade|te|trailer|transfer-encoding|content-length|proxy-.*|idempotency-(key|replayed|status)|retry-after)$/;

/** @throws TypeError, RangeError  a wrong option, by its name */
export function resolveIdempotency<Request>(options: IdempotencyOptions<Request>): ResolvedIdempotency<Request> {
  const known = checkKnown(options, NAMES);
  const { required = false, strict = false, whenRunning = "reject", whenUnavailable = "reject" } = known;
  const { keepMs = 86_400_000, leaseMs = 15_000, maxHoldMs = 120_000, bodyBytesMax = 262_144 } = known;
  const { requestBytesMax = 1_048_576 } = known;
  const { keep = keepsByDefault, replayHeaders = ["content-type", "location", "etag"], scope, fingerprint } = known;
  for (const [option, value] of Object.entries({ required, strict })) {
    if (typeof value !== "boolean") throw new TypeError(`${option} must be true or false; got ${show(value)}`);
  }
  for (const [option, value] of Object.entries({ scope, keep, fingerprint })) {
    if (value !== undefined && typeof value !== "function") {
      throw new TypeError(`${option} must be a function; got ${show(value)}`);
    }
  }
  checkLeaseMs(leaseMs);
  checkWhole("keepMs", keepMs, leaseMs, YEAR_MS);
  if (maxHoldMs !== Infinity) checkWhole("maxHoldMs", maxHoldMs, 100, YEAR_MS, " or Infinity");
  checkWhole("bodyBytesMax", bodyBytesMax, 0, 8_388_608);
  checkWhole("requestBytesMax", requestBytesMax, 0, 1_073_741_824);
  checkWhenRunning(whenRunning);
  if (whenUnavailable !== "reject" && whenUnavailable !== "pass") {
    throw new TypeError(`whenUnavailable must be "reject" or "pass"; got ${show(whenUnavailable)}`);
  }
  return {
    ...{
      required,
      strict,
      whenRunning,
      whenUnavailable,
      keepMs,
      leaseMs,
      maxHoldMs,
      bodyBytesMax,
      requestBytesMax,
      keep,
    },
    replayHeaders: checkHeaders(replayHeaders),
    ...(scope === undefined ? {} : { scope }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
  };
}

function keepsByDefault(status: number): boolean {
  return status < 500 && !NOT_KEPT.includes(status);
}

function checkWhenRunning(whenRunning: unknown): void {
  if (whenRunning === "reject") return;
  const expected = 'whenRunning must be "reject" or { waitMs }';
  if (typeof whenRunning !== "object" || whenRunning === null || Object.keys(whenRunning).join() !== "waitMs") {
    throw new TypeError(`${expected}; got ${show(whenRunning)}`);
  }
  const { waitMs } = whenRunning as { waitMs: unknown };
  if (typeof waitMs !== "number") throw new TypeError(`${expected}, waitMs a number; got ${show(waitMs)}`);
  if (!(waitMs >= 0)) throw new RangeError(`whenRunning.waitMs must be 0 or more, or Infinity; got ${waitMs}`);
}

/** In lower case, each once. */
function checkHeaders(names: unknown): string[] {
  if (!Array.isArray(names)) throw new TypeError(`replayHeaders must be an array of names; got ${show(names)}`);
  for (const name of names) {
    if (typeof name !== "string" || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) {
      throw new TypeError(`replayHeaders must be names of headers; got ${show(name)}`);
    }
    if (NEVER_REPLAYED.test(name.toLowerCase())) {
      throw new RangeError(
        `replayHeaders must not have ${show(name)}, which belongs to a single response or connection`,
      );
    }
  }
  return [...new Set(["content-encoding", ...names.map((name: string) => name.toLowerCase())])];
}
