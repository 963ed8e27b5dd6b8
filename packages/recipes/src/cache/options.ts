/** The options of `cache`: defaults and validation. */
import type { Filled } from "holdfast/internal";
import { checkKnown, checkLeaseMs, checkWhole, show } from "holdfast/internal";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";

/** Options of `cache`. All processes that share the cache must use the same options. */
export interface CacheOptions<Value = unknown> {
  /**
   * How long a value is fresh. With a longer time, values are loaded less often. With a shorter time, callers see
   * changes sooner. Whole milliseconds, 1 to 31,536,000,000.
   * @default 60_000
   */
  readonly freshMs?: number | undefined;

  /**
   * How long after `freshMs` a value is stale: callers still get it, while one process loads a new one in the
   * background. A longer time hides a slow or unavailable source. With 0, callers wait for the new value. Whole
   * milliseconds, 0 to 31,536,000,000.
   * @default 0
   */
  readonly staleMs?: number | undefined;

  /**
   * How long a negative result is fresh. A negative result is never stale. With 0, negative results are not stored.
   * Whole milliseconds, 0 to 31,536,000,000.
   * @default 5_000, or `freshMs` if that is less
   */
  readonly negativeMs?: number | undefined;

  /** Returns whether a result is negative, such as "there is no such user". @default true for null and undefined */
  readonly isNegative?: ((value: Value) => boolean) | undefined;

  /**
   * Length of the lease of a load, which is renewed while the load runs. With a shorter lease, the next process takes
   * over sooner after a crash. Whole milliseconds, 100 to 31,536,000,000.
   * @default 10_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * What to do if the server does not reply: load the value once in each process without storing it, or reject with
   * StoreError.
   * @default "load"
   */
  readonly whenUnavailable?: "load" | "reject" | undefined;

  /**
   * Maximum fraction by which `freshMs` is shortened at random for each value, so that values loaded at the same time
   * are not reloaded at the same time. 0 to 1.
   * @default 0.1
   */
  readonly jitter?: number | undefined;

  /**
   * Number of consecutive failed loads after which all waiting callers get the error. A whole number from 1 to 1,000.
   * @default 3
   */
  readonly attemptsMax?: number | undefined;

  /**
   * Maximum size of a stored value after encoding. A larger value is returned to callers but not stored. Whole bytes, 0
   * to 16,777,216.
   * @default 1_048_576
   */
  readonly valueBytesMax?: number | undefined;

  /** Converts values to text and back. Values that it cannot encode are not stored. @default jsonCodec */
  readonly codec?: Codec | undefined;

  /** Called with the error of a background load, because no caller gets that error. */
  readonly onReloadError?: ((error: unknown, key: string) => void) | undefined;
}

/** Validated options with defaults. */
export type ResolvedCache<Value = unknown> = Filled<CacheOptions<Value>>;

const KNOWN = [
  "freshMs",
  "staleMs",
  "negativeMs",
  "isNegative",
  "leaseMs",
  "whenUnavailable",
  "jitter",
  "attemptsMax",
  "valueBytesMax",
  "codec",
  "onReloadError",
] as const satisfies readonly (keyof CacheOptions)[];
const YEAR_MS = 31_536_000_000;

/**
 * Validates the options and fills in defaults.
 *
 * @throws TypeError, RangeError  an invalid option; the message names it
 */
export function resolveCache<Value>(options: CacheOptions<Value>): ResolvedCache<Value> {
  const known = checkKnown(options, KNOWN);
  const { freshMs = 60_000, staleMs = 0, negativeMs = Math.min(freshMs, 5_000), leaseMs = 10_000 } = known;
  const { whenUnavailable = "load", jitter = 0.1, attemptsMax = 3, valueBytesMax = 1_048_576 } = known;
  const { codec = jsonCodec, isNegative = isNothing, onReloadError = ignore } = known;
  checkWhole("freshMs", freshMs, 1, YEAR_MS);
  checkWhole("staleMs", staleMs, 0, YEAR_MS);
  checkWhole("negativeMs", negativeMs, 0, YEAR_MS);
  checkLeaseMs(leaseMs);
  if (whenUnavailable !== "load" && whenUnavailable !== "reject") {
    throw new TypeError(`whenUnavailable must be "load" or "reject"; got ${show(whenUnavailable)}`);
  }
  if (typeof jitter !== "number") throw new TypeError(`jitter must be a number from 0 to 1; got ${show(jitter)}`);
  if (!(jitter >= 0 && jitter <= 1)) throw new RangeError(`jitter must be a number from 0 to 1; got ${jitter}`);
  checkWhole("attemptsMax", attemptsMax, 1, 1_000);
  checkWhole("valueBytesMax", valueBytesMax, 0, 16_777_216);
  checkCodec(codec);
  checkFunction("isNegative", isNegative);
  checkFunction("onReloadError", onReloadError);
  return {
    freshMs,
    staleMs,
    negativeMs,
    leaseMs,
    whenUnavailable,
    jitter,
    attemptsMax,
    valueBytesMax,
    codec,
    isNegative,
    onReloadError,
  };
}

function checkFunction(option: string, value: unknown): void {
  if (typeof value !== "function") throw new TypeError(`${option} must be a function; got ${show(value)}`);
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined;
}

function ignore(): void {}
