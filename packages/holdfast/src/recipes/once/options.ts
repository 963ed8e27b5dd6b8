/** What a caller of `once` may ask for, its defaults, and the checks. */

import type { Filled } from "../../internal.js";
import { checkLabel, checkLeaseMs, checkWhole, show, unknownOption } from "../../internal.js";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";
import { checkBytes } from "../names.js";

/** How the work ended. */
export type OnceOutcome<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: unknown };

/** What becomes of the call: its result is kept, the next caller runs it again, or nobody does before somebody has looked. */
export type OncePolicy = "keep" | "release" | "block";

/** How a call is to be done once. */
export interface OnceOptions<Value = unknown> {
  /** Part of the key, such as a tenant: one can never get the result of another. 1 to 255 bytes. */
  readonly scope?: string | undefined;

  /**
   * What the call is about, such as the whole request: another one under the same key is refused. Compared by the SHA-256 of its
   * canonical JSON, in which the order of properties does not matter.
   * @default undefined, which only undefined equals
   */
  readonly fingerprint?: unknown;

  /**
   * Whether another fingerprint is also refused after the call was given back. With false it is not, unless something was saved or
   * an attempt has died: a call that came nowhere binds nobody.
   * @default false
   */
  readonly strictFingerprint?: boolean | undefined;

  /**
   * Length of the lease of a running attempt, which is renewed. Shorter lets the next one take over sooner after a crash. Whole
   * milliseconds, 100 to 31 536 000 000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * How long the record is kept, from the last thing that happened to it. The promise lasts as long: after that the call is run
   * again. Whole milliseconds, `leaseMs` to 31 536 000 000.
   * @default 86_400_000, a day
   */
  readonly keepMs?: number | undefined;

  /**
   * What to do while another caller runs it: wait for its result, or reject at once with OnceRunningError.
   * @default "wait"
   */
  readonly whenRunning?: "wait" | "reject" | undefined;

  /** Longest wait for another caller. Milliseconds, 0 or more; Infinity never gives up. @default 10_000 */
  readonly waitMs?: number | undefined;

  /** An attempt that runs for longer counts as lost: its signal aborts, and the next one takes over. @default Infinity */
  readonly maxHoldMs?: number | undefined;

  /**
   * What becomes of the call when its work has ended. If it throws, the call is blocked.
   * @default keeps a value, and releases on an error
   */
  readonly after?: ((outcome: OnceOutcome<Value>) => OncePolicy) | undefined;

  /**
   * A value that is longer as text is not kept: the call is recorded as done without it, and later callers get
   * OnceUnavailableError, never a second run. Whole bytes, 0 to 16 777 216.
   * @default 262_144
   */
  readonly valueBytesMax?: number | undefined;

  /** How values become text. @default jsonCodec */
  readonly codec?: Codec | undefined;

  /** How what `lease.save` keeps becomes text. @default the `codec` */
  readonly savedCodec?: Codec | undefined;

  /** Free text shown to whoever waits, at most 256 bytes. */
  readonly label?: string | undefined;

  /** Ends the wait, and rejects with its reason. The work has a signal of its own: `lease.signal`. */
  readonly signal?: AbortSignal | undefined;
}

/** The options with their defaults, checked; but for `waitMs` and `maxHoldMs`, which the acquire checks. */
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

/** @throws TypeError, RangeError  a wrong option, by its name */
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
  checkCodec(savedCodec);
  const waiting = { whenRunning, waitMs, signal };
  const kept = { leaseMs, keepMs, maxHoldMs, valueBytesMax, codec, savedCodec, label };
  return { scope, fingerprint, strictFingerprint, ...waiting, ...kept };
}
