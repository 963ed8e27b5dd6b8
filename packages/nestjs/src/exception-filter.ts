import { type ArgumentsHost, Catch, HttpException, type HttpServer, Logger, Optional } from "@nestjs/common";
import { BaseExceptionFilter } from "@nestjs/core";
import { AcquireTimeoutError, ClosedError, LockError, PausedError, StoreError } from "holdfast";

/** The shortest `Retry-After` in seconds. Also used after a wait for a held lock, and if the Holdfast was closed. */
const SOON_S = 1;
/** `Retry-After` in seconds for a pause without an end. */
const PAUSED_S = 60;
/** The longest `Retry-After` in seconds. */
const LONGEST_S = 3_600;

const logger: Logger = new Logger("HoldfastExceptionFilter");

/**
 * Responds to HTTP requests that did not get their lock. The response does not name the holder. The error does, for
 * your logs.
 *
 * | error | response |
 * |---|---|
 * | `AcquireTimeoutError` with `waitMs: 0`: the lock is held | 409 |
 * | `AcquireTimeoutError` after a wait, `PausedError`, `StoreError`, `ClosedError` | 503 and `Retry-After` |
 * | `LeaseLostError`, and all others | 500 |
 *
 * Register it with `app.useGlobalFilters(new HoldfastExceptionFilter(app.getHttpAdapter()))`, as a provider of
 * `APP_FILTER`, or with `@UseFilters`. It leaves errors outside of HTTP to Nest. It logs errors in WebSocket gateways,
 * because Nest calls no other filter for them.
 */
export class HoldfastExceptionFilter extends BaseExceptionFilter<LockError> {
  /** @param httpAdapter  what `app.getHttpAdapter()` returns; needed only if you create the filter yourself */
  constructor(httpAdapter?: HttpServer) {
    super(httpAdapter);
  }

  /** Sends the response for an error. Called by Nest. */
  override catch(error: LockError, host: ArgumentsHost): void {
    const type: string = host.getType();
    if (type !== "http") {
      // Returning nothing leaves the error to Nest. Throwing would end the process or leave the caller without a reply.
      if (type === "ws") logger.error(error.message, error.stack);
      return;
    }
    const adapter = this.applicationRef ?? this.httpAdapterHost?.httpAdapter;
    const response: unknown = host.switchToHttp().getResponse();
    // If the headers were already sent, setting one would fail, and Nest would log that failure instead of this error.
    const answer = adapter?.isHeadersSent?.(response) === true ? undefined : answerTo(error);
    if (answer === undefined) {
      // For an unexpected error, Nest responds with 500 and logs the error.
      super.catch(error, host);
      return;
    }
    const { status, title, retryAfterS } = answer;
    if (retryAfterS !== undefined) adapter?.setHeader?.(response, "Retry-After", String(retryAfterS));
    const { code } = error;
    const body = { statusCode: status, error: title, code };
    // The cast is safe because the base filter accepts any error.
    super.catch(new HttpException(body, status, { cause: error }) as unknown as LockError, host);
  }
}

Catch(LockError)(HoldfastExceptionFilter);
// Without this, Nest 12 warns that it does not know what to inject.
Optional()(HoldfastExceptionFilter, undefined, 0);

interface Answer {
  readonly status: number;
  readonly title: string;
  readonly retryAfterS?: number | undefined;
}

function answerTo(error: LockError): Answer | undefined {
  if (error instanceof AcquireTimeoutError && error.waitMs === 0 && error.pause === undefined) {
    return { status: 409, title: "Conflict" };
  }
  const retryAfterS = secondsUntil(error);
  return retryAfterS === undefined ? undefined : { status: 503, title: "Service Unavailable", retryAfterS };
}

/** Returns the number of seconds until a retry may succeed; undefined if a retry does not help. */
function secondsUntil(error: LockError): number | undefined {
  const pause = error instanceof AcquireTimeoutError ? error.pause : error instanceof PausedError ? error : undefined;
  if (pause !== undefined)
    return whole(pause.untilAtMs === undefined ? PAUSED_S : (pause.untilAtMs - Date.now()) / 1_000);
  if (error instanceof StoreError) return whole((error.resumesInMs ?? 0) / 1_000);
  return error instanceof AcquireTimeoutError || error instanceof ClosedError ? SOON_S : undefined;
}

function whole(seconds: number): number {
  return Math.min(Math.max(SOON_S, Math.ceil(seconds)), LONGEST_S);
}
