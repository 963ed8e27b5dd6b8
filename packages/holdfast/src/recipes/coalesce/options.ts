/** What a caller of `coalesce` may ask for, its defaults, and the checks. */
import type { Filled } from "../../internal.js";
import { checkKnown, checkLabel, checkLeaseMs, checkWhole, show } from "../../internal.js";
import { type Codec, jsonCodec } from "../codec.js";

/** How a call is to be coalesced with others. */
export interface CoalesceOptions {
  /**
   * What becomes of callers that wait when one of them begins. With `"newest"` that is the newest, and the older ones are told
   * that they are superseded: what they wanted done is out of date. With `"join"` it is the oldest, and the others get what it
   * returns: all want the same done.
   * @default "newest"
   */
  readonly mode?: "newest" | "join" | undefined;

  /**
   * Whether whoever runs now is asked to end, since what it does is out of date: its signal aborts with the reason `superseded`.
   * This call waits all the same until that one has ended.
   * @default false
   */
  readonly cancelRunning?: boolean | undefined;

  /**
   * Longest wait to begin; with `"join"` also for the end of what was joined. Milliseconds, 0 or more. Whoever gives up runs
   * nothing, so that its update waits for the next call; hence the default.
   * @default Infinity
   */
  readonly waitMs?: number | undefined;

  /**
   * Length of the lease, which is renewed while the work runs. Shorter lets the next one follow sooner after a crash. Whole
   * milliseconds, 100 to 31,536,000,000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /** Work that runs for longer counts as lost: its signal aborts, and the next one follows. @default Infinity */
  readonly maxHoldMs?: number | undefined;

  /**
   * A value that is longer as text is not handed to those who joined: they get CoalesceJoinError. Whole bytes, 0 to 16,777,216.
   * @default 262_144
   */
  readonly valueBytesMax?: number | undefined;

  /** How values become text, for those who joined. @default jsonCodec */
  readonly codec?: Codec | undefined;

  /** Free text shown to whoever waits, at most 256 bytes. */
  readonly label?: string | undefined;

  /** Ends the wait, and rejects with its reason. The work has a signal of its own: `lease.signal`. */
  readonly signal?: AbortSignal | undefined;
}

/** The options with their defaults, checked; but for those that the acquire checks. */
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

/** @throws TypeError, RangeError  a wrong option, by its name */
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
  if (typeof codec?.encode !== "function" || typeof codec.decode !== "function") {
    throw new TypeError(`codec must have encode and decode; got ${show(codec)}`);
  }
  checkLabel(label);
  return { mode, cancelRunning, waitMs, leaseMs, maxHoldMs, valueBytesMax, codec, label, signal };
}
