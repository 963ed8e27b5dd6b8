/** Options of the HTTP integrations, their defaults and checks. They are the same for every framework. */
import type { Filled } from "holdfast/internal";
import { checkKnown, checkLeaseMs, checkWhole, show } from "holdfast/internal";

/** How requests with an `Idempotency-Key` are handled. `Request` is the request type of the framework. */
export interface IdempotencyOptions<Request = unknown> {
  /**
   * Whether a POST or PATCH without the header is refused with 400. If false, it is handled every time.
   * @default false
   */
  readonly required?: boolean | undefined;

  /**
   * Returns a part of the key, such as the tenant or the user, so that no client gets the response to another client's
   * request. A non-empty string or a number. Without it, all clients share their keys.
   */
  readonly scope?: ((request: Request) => string | number) | undefined;

  /**
   * How long a response is kept. Document it for your clients. Whole milliseconds, `leaseMs` to 31,536,000,000.
   * @default 86_400_000, a day
   */
  readonly keepMs?: number | undefined;

  /**
   * The lease of a request while it is being handled. It is renewed while the process lives. If the process crashes, a
   * retry is handled after the lease ends. Whole milliseconds, 100 to 31,536,000,000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * The longest time a handler may take. After that, the lease ends even if the process is alive, and the next retry is
   * handled. This limits a handler that never responds. Whole milliseconds, 100 to 31,536,000,000, or Infinity.
   * @default 120_000
   */
  readonly maxHoldMs?: number | undefined;

  /**
   * What a second request gets while the first one is being handled: 409 immediately, or the response of the first one
   * if it comes within `waitMs` milliseconds.
   * @default "reject"
   */
  readonly whenRunning?: "reject" | { readonly waitMs: number } | undefined;

  /**
   * Decides whether a response with this status is kept and replayed. If false, the next retry is handled. If
   * `"block"`, the outcome counts as unknown, and retries get 409 until you call `resolveOnce`. A function that throws
   * or returns any other value also blocks.
   * @default true for every status below 500 except 401, 403, 408, 409, 425 and 429
   */
  readonly keep?: ((status: number) => boolean | "block") | undefined;

  /**
   * The response headers that are kept and replayed. `content-encoding` is always kept. Cookies, dates, tracing headers
   * and headers of a single connection cannot be kept.
   * @default ["content-type", "location", "etag"]
   */
  readonly replayHeaders?: readonly string[] | undefined;

  /**
   * The largest response body that is kept. A larger one is sent but not kept: Holdfast records that the request was
   * handled, and retries get 409. Whole bytes, 0 to 8,388,608.
   * @default 262_144
   */
  readonly bodyBytesMax?: number | undefined;

  /**
   * The largest request body that Holdfast reads if no parser has read it before. A larger one is refused with 413. If
   * you expect larger bodies, put a parser with its own limit before this middleware. Whole bytes, 0 to 1,073,741,824.
   * @default 1_048_576
   */
  readonly requestBytesMax?: number | undefined;

  /**
   * What happens if Redis does not reply: respond with 503, or call the handler without protection.
   * @default "reject"
   */
  readonly whenUnavailable?: "reject" | "pass" | undefined;

  /** Whether the header must be a quoted String, as the IETF draft requires. @default false */
  readonly strict?: boolean | undefined;

  /**
   * Returns the value that is compared with that of the first request in place of the body, such as the names and
   * digests of uploaded files. You need it only if a parser has read the body and not left it on the request.
   * @default the body: JSON regardless of the order of properties, forms by their fields, everything else by its bytes
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

/** Headers that belong to one request, one connection or one browser. They are never replayed. */
const NEVER_REPLAYED =
  /^(set-cookie2?|date|age|server-timing|traceparent|tracestate|tracecontext|baggage|b3|x-b3-.*|uber-trace-id|x-datadog-.*|x-amzn-(trace-id|requestid)|x-amz-request-id|x-cloud-trace-context|(x-)?(request|correlation|trace)-id|sentry-trace|connection|keep-alive|upgrade|te|trailer|transfer-encoding|content-length|proxy-.*|idempotency-(key|replayed|status)|retry-after)$/;

/** Checks the options and adds the defaults. @throws TypeError, RangeError  invalid option; the message names it */
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

/**
 * Returns the header names in lower case, without duplicates.
 *
 * @throws TypeError, RangeError  not a list of header names
 */
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
