import { type ArgumentsHost, Catch, HttpException, type HttpServer, Logger } from "@nestjs/common";
import { BaseExceptionFilter } from "@nestjs/core";
import { AcquireTimeoutError, ClosedError, LockError, PausedError, StoreError } from "../../index.js";

/** For a server that goes away, or a lock that somebody has: soon. */
const SOON_S = 1;
/** For a pause without an end. */
const PAUSED_S = 60;
const LONGEST_S = 3_600;

const logger: Logger = new Logger("HoldfastExceptionFilter");

/**
 * Answers HTTP requests whose locks were not to be had. Nothing in the answer says who has them: that is in the error, for your logs.
 *
 * | error | answer |
 * |---|---|
 * | `AcquireTimeoutError` with `waitMs: 0`: somebody has it | 409 |
 * | `AcquireTimeoutError` after a wait, `PausedError`, `StoreError`, `ClosedError` | 503 and `Retry-After` |
 * | `LeaseLostError`, and all others | 500 |
 *
 * As `app.useGlobalFilters(new HoldfastExceptionFilter(app.getHttpAdapter()))`, as a provider of `APP_FILTER`, or with `@UseFilters`. What is
 * thrown outside of HTTP is left to Nest, and at a gateway of WebSockets, where Nest asks nobody else, it is logged.
 */
export class HoldfastExceptionFilter extends BaseExceptionFilter<LockError> {
  /** @param httpAdapter  where Nest does not make the filter: what `app.getHttpAdapter()` returns */
  constructor(httpAdapter?: HttpServer) {
    super(httpAdapter);
  }

  /** Answers, and Nest calls it. */
  override catch(error: LockError, host: ArgumentsHost): void {
    const type: string = host.getType();
    if (type !== "http") {
      // What is thrown here ends the process, or leaves a caller without any answer. Who returns nothing has not handled it.
      if (type === "ws") logger.error(error.message, error.stack);
      return;
    }
    const adapter = this.applicationRef ?? this.httpAdapterHost?.httpAdapter;
    const response: unknown = host.switchToHttp().getResponse();
    // No header can be set then, and to try would be what is logged.
    const answer = adapter?.isHeadersSent?.(response) === true ? undefined : answerTo(error);
    if (answer === undefined) {
      // What nobody expects: Nest answers 500, and logs it.
      super.catch(error, host);
      return;
    }
    const { status, title, retryAfterS } = answer;
    if (retryAfterS !== undefined) adapter?.setHeader?.(response, "Retry-After", String(retryAfterS));
    const { code } = error;
    const body = { statusCode: status, error: title, code };
    // The filter of Nest takes any error, whatever this one was made for.
    super.catch(new HttpException(body, status, { cause: error }) as unknown as LockError, host);
  }
}

Catch(LockError)(HoldfastExceptionFilter);

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

/** When it may be worth another try; undefined if it never is. */
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
