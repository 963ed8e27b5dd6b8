/** The options of `coalesce`: defaults and validation. */
import type { Filled } from "holdfast/internal";
import { checkKnown, checkLabel, checkLeaseMs, checkWhole, show } from "holdfast/internal";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";

/** Options of `coalesce`. */
export interface CoalesceOptions {
  /**
   * Which waiting call runs next, and what the others get.
   *
   * - `"newest"`: the newest call runs, and older calls are superseded. Use it if newer calls make older ones obsolete.
   * - `"join"`: the oldest call runs, and the others get its value. Use it if all calls do the same work.
   * @default "newest"
   */
  readonly mode?: "newest" | "join" | undefined;

  /**
   * Whether to ask the current run to end because its work is obsolete: its signal aborts with the reason `superseded`.
   * This call still waits until that run has ended.
   * @default false
   */
  readonly cancelRunning?: boolean | undefined;

  /**
   * Longest wait for the work to begin; with `"join"`, also for the joined run to end. Milliseconds, 0 or more. A call
   * that gives up does not run, so its update waits for the next call. Therefore the default is Infinity.
   * @default Infinity
   */
  readonly waitMs?: number | undefined;

  /**
   * Length of the lease, which is renewed while the work runs. With a shorter lease, the next run follows sooner after
   * a crash. Whole milliseconds, 100 to 31,536,000,000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * Longest time the work may run. After that, its lease counts as lost: the signal aborts, and the next run follows.
   * Milliseconds.
   * @default Infinity
   */
  readonly maxHoldMs?: number | undefined;

  /**
   * Maximum size of an encoded value that is passed to calls that joined. If a value is larger, they get
   * CoalesceJoinError. Whole bytes, 0 to 16,777,216.
   * @default 262_144
   */
  readonly valueBytesMax?: number | undefined;

  /** Converts values to text and back, for calls that joined. @default jsonCodec */
  readonly codec?: Codec | undefined;

  /** Free text shown to waiting callers, at most 256 bytes. */
  readonly label?: string | undefined;

  /**
   * Aborts the wait; the call rejects with the signal's reason. Does not stop the work, which has its own signal,
   * `lease.signal`.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Validated options with defaults. `waitMs`, `maxHoldMs` and `signal` are validated later, by `acquire`. */
export type ResolvedCoalesce = Filled<Omit<CoalesceOptions, "signal">> & { readonly signal: AbortSignal | undefined };

const NAMES = [
  "mode",
  "cancelRunning",
  "waitMs",
  "leaseMs",
  "maxHoldMs",
  "valueBytesMax",
  "codec",
  "label",
  "signal",
] as const;

/**
 * Validates the options and fills in defaults.
 *
 * @throws TypeError, RangeError  an invalid option; the message names it
 */
export function resolveCoalesce(options: CoalesceOptions): ResolvedCoalesce {
  const {
    mode = "newest",
    cancelRunning = false,
    waitMs = Infinity,
    leaseMs = 15_000,
    ...rest
  } = checkKnown(options, NAMES);
  const { maxHoldMs = Infinity, valueBytesMax = 262_144, codec = jsonCodec, label = "", signal } = rest;
  if (mode !== "newest" && mode !== "join") throw new TypeError(`mode must be "newest" or "join"; got ${show(mode)}`);
  if (typeof cancelRunning !== "boolean") {
    throw new TypeError(`cancelRunning must be true or false; got ${show(cancelRunning)}`);
  }
  checkLeaseMs(leaseMs);
  checkWhole("valueBytesMax", valueBytesMax, 0, 16_777_216);
  checkCodec(codec);
  checkLabel(label);
  return { mode, cancelRunning, waitMs, leaseMs, maxHoldMs, valueBytesMax, codec, label, signal };
}
