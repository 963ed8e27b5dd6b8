/** What a cache may be told, its defaults, and the checks. */
import type { Filled } from "../../internal.js";
import { checkKnown, checkLeaseMs, checkWhole, show } from "../../internal.js";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";

/** How values are loaded and kept. All processes that share the cache say the same. */
export interface CacheOptions<Value = unknown> {
  /**
   * How long a value is given without question. Longer loads less often; shorter shows changes sooner. Whole milliseconds,
   * 1 to 31,536,000,000.
   * @default 60_000
   */
  readonly freshMs?: number | undefined;

  /**
   * How long after that it is still given, while one process anywhere loads it anew in the background. Longer hides more of
   * what is slow or down behind the cache; 0 makes callers wait for the new value. Whole milliseconds, 0 to 31,536,000,000.
   * @default 0
   */
  readonly staleMs?: number | undefined;

  /** How long a negative result is kept; it is never stale. 0 keeps none. Whole milliseconds, 0 to 31,536,000,000. @default 5_000, or `freshMs` if that is less */
  readonly negativeMs?: number | undefined;

  /** Which results are negative, such as "there is no such user". @default null and undefined */
  readonly isNegative?: ((value: Value) => boolean) | undefined;

  /**
   * Length of the lease of whoever loads, which is renewed. Shorter lets the next one take over sooner after a crash. Whole
   * milliseconds, 100 to 31,536,000,000.
   * @default 10_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * What to do when the server does not answer: load all the same, once in each process, and keep nothing; or reject with
   * StoreError.
   * @default "load"
   */
  readonly whenUnavailable?: "load" | "reject" | undefined;

  /**
   * By which share of it `freshMs` is shortened at random, anew for each value, so that what was loaded together is not loaded
   * anew together. 0 to 1.
   * @default 0.1
   */
  readonly jitter?: number | undefined;

  /** How many loads in a row may fail before all who wait get the error. Whole, 1 to 1,000. @default 3 */
  readonly attemptsMax?: number | undefined;

  /** A value that is longer as text is given to its callers and not kept. Whole bytes, 0 to 16,777,216. @default 1_048_576 */
  readonly valueBytesMax?: number | undefined;

  /** How values become text. What it cannot encode is not kept. @default jsonCodec */
  readonly codec?: Codec | undefined;

  /** Told what a load in the background threw, since no caller is. */
  readonly onReloadError?: ((error: unknown, key: string) => void) | undefined;
}

/** The options with their defaults, checked. */
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

/** @throws TypeError, RangeError  a wrong option, by its name */
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
