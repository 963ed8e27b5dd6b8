/** The options of `once`: defaults and validation. */

import type { Filled } from "holdfast/internal";
import { checkLabel, checkLeaseMs, checkWhole, show, unknownOption } from "holdfast/internal";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";
import { checkBytes } from "../names.js";

/** How the work ended. */
export type OnceOutcome<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: unknown };

/**
 * What happens to the call after its work has ended.
 *
 * - `keep`: the result is recorded, and later callers get it
 * - `release`: the next caller runs the call again
 * - `block`: the call does not run again until an operator resolves it; see `resolveOnce`
 */
export type OncePolicy = "keep" | "release" | "block";

/** Options of `once`. */
export interface OnceOptions<Value = unknown> {
  /** Namespace of the key, such as a tenant. A call never gets a result from another scope. 1 to 255 bytes. */
  readonly scope?: string | undefined;

  /**
   * The content of the call, such as the whole request. A call with the same key and a different fingerprint is
   * refused. Fingerprints are compared by the SHA-256 of their canonical JSON, so the order of properties does not
   * matter.
   * @default undefined, which matches only undefined
   */
  readonly fingerprint?: unknown;

  /**
   * Whether a different fingerprint is also refused after the call was released. If false, a released call accepts a
   * new fingerprint, unless an attempt saved data or crashed.
   * @default false
   */
  readonly strictFingerprint?: boolean | undefined;

  /**
   * Length of the lease of a running attempt. The lease is renewed while the work runs. With a shorter lease, the next
   * attempt takes over sooner after a crash. Whole milliseconds, 100 to 31,536,000,000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * How long the record is kept after its last change. The guarantee lasts just as long. After that, the call can run
   * again. Whole milliseconds, `leaseMs` to 31,536,000,000.
   * @default 86_400_000 (one day)
   */
  readonly keepMs?: number | undefined;

  /**
   * What to do while another caller runs the work: wait for its result, or reject immediately with OnceRunningError.
   * @default "wait"
   */
  readonly whenRunning?: "wait" | "reject" | undefined;

  /** Longest wait for another caller. Milliseconds, 0 or more; Infinity waits forever. @default 10_000 */
  readonly waitMs?: number | undefined;

  /**
   * Longest time an attempt may run. After that it counts as lost: its signal aborts, and the next attempt can take
   * over. Milliseconds.
   * @default Infinity
   */
  readonly maxHoldMs?: number | undefined;

  /**
   * Decides what happens to the call after its work has ended. If this function throws, the call is blocked.
   * @default keeps a value and releases on an error
   */
  readonly after?: ((outcome: OnceOutcome<Value>) => OncePolicy) | undefined;

  /**
   * Maximum size of an encoded value that is kept. If a value is larger, the call is recorded as done without it. Later
   * callers then get OnceUnavailableError, and the work does not run again. Whole bytes, 0 to 16,777,216.
   * @default 262_144
   */
  readonly valueBytesMax?: number | undefined;

  /** Converts values to text and back. @default jsonCodec */
  readonly codec?: Codec | undefined;

  /** Converts the data of `lease.save` to text and back. @default the `codec` */
  readonly savedCodec?: Codec | undefined;

  /** Free text shown to waiting callers, at most 256 bytes. */
  readonly label?: string | undefined;

  /**
   * Aborts the wait; the call rejects with the signal's reason. It does not stop the work, which has `lease.signal`.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Validated options with defaults. `waitMs` and `maxHoldMs` are validated later, by the acquire. */
export type ResolvedOnce = Filled<Omit<OnceOptions<never>, "scope" | "signal" | "after" | "fingerprint">> & {
  readonly scope: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly fingerprint: unknown;
};

const NAMES: Readonly<Record<keyof OnceOptions, true>> = {
  scope: true,
  fingerprint: true,
  strictFingerprint: true,
  leaseMs: true,
  keepMs: true,
  whenRunning: true,
  waitMs: true,
  maxHoldMs: true,
  after: true,
  valueBytesMax: true,
  codec: true,
  savedCodec: true,
  label: true,
  signal: true,
};
const YEAR_MS = 31_536_000_000;

/** @throws TypeError, RangeError  an invalid option; the message names it */
export function resolveOnce(options: OnceOptions<never>): ResolvedOnce {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options must be an object; got ${show(options)}`);
  }
  for (const option of Object.keys(options)) {
    if (Object.hasOwn(NAMES, option)) continue;
    throw unknownOption(option, Object.keys(NAMES));
  }
  const { scope, fingerprint, leaseMs = 15_000, keepMs = 86_400_000, whenRunning = "wait", waitMs = 10_000 } = options;
  const { maxHoldMs = Infinity, after, valueBytesMax = 262_144, codec = jsonCodec, label = "", signal } = options;
  const { strictFingerprint = false } = options;
  if (scope !== undefined) checkBytes("scope", scope);
  if (typeof strictFingerprint !== "boolean") {
    throw new TypeError(`strictFingerprint must be true or false; got ${show(strictFingerprint)}`);
  }
  checkLeaseMs(leaseMs);
  checkWhole("keepMs", keepMs, leaseMs, YEAR_MS);
  if (whenRunning !== "wait" && whenRunning !== "reject") {
    throw new TypeError(`whenRunning must be "wait" or "reject"; got ${show(whenRunning)}`);
  }
  checkWhole("valueBytesMax", valueBytesMax, 0, 16_777_216);
  checkLabel(label);
  if (after !== undefined && typeof after !== "function") {
    throw new TypeError(`after must be a function; got ${show(after)}`);
  }
  checkCodec(codec);
  const { savedCodec = codec } = options;
  checkCodec(savedCodec, "savedCodec");
  const waiting = { whenRunning, waitMs, signal };
  const kept = { leaseMs, keepMs, maxHoldMs, valueBytesMax, codec, savedCodec, label };
  return { scope, fingerprint, strictFingerprint, ...waiting, ...kept };
}
