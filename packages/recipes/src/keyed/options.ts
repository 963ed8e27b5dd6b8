/** The options of `keyed`: defaults and validation. */
import type { Filled } from "holdfast/internal";
import { checkKnown, checkLabel, checkLeaseMs, checkWhole, show } from "holdfast/internal";
import { checkBytes } from "../names.js";

/** Options of `Keyed.run`. */
export interface KeyedOptions {
  /**
   * The sender's id of the event, the same for each delivery. An applied event is not applied again for `keepMs`. 1 to
   * 255 bytes. Without an id, no event is a duplicate.
   */
  readonly eventId?: string | undefined;

  /**
   * Position of the event in the sender's order, such as a time or a version. An event with a lower sequence than the
   * last one applied to the object is outdated; an event with an equal sequence and another id is applied. A safe
   * integer. Without a sequence, no event is outdated.
   */
  readonly sequence?: number | undefined;

  /**
   * How many callers of this Holdfast may wait for the same object. Further callers are refused with `full`. A larger
   * number absorbs longer bursts. With a smaller number, the sender learns sooner that it must retry. A whole number
   * from 1 to 1,000,000.
   * @default 100
   */
  readonly waitersMax?: number | undefined;

  /** Longest wait for the object. Milliseconds, 0 or more; Infinity waits forever. @default 10_000 */
  readonly waitMs?: number | undefined;

  /**
   * How long applied events are remembered. Make it longer than the sender keeps retrying. A shorter time takes less
   * memory. Whole milliseconds, 100 to 31,536,000,000.
   * @default 604_800_000 (one week)
   */
  readonly keepMs?: number | undefined;

  /**
   * Length of the lease, which is renewed while the work runs. With a shorter lease, the next event follows sooner
   * after a crash. Whole milliseconds, 100 to 31,536,000,000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * Longest time the work may run. After that, its lease counts as lost: the signal aborts, and the next event follows.
   * Milliseconds.
   * @default Infinity
   */
  readonly maxHoldMs?: number | undefined;

  /** Free text shown to waiting callers, at most 256 bytes. */
  readonly label?: string | undefined;

  /**
   * Aborts the wait; the call rejects with the signal's reason. Does not stop the work, which has its own signal,
   * `lease.signal`.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Validated options with defaults. `waitMs`, `maxHoldMs` and `signal` are validated later, by `acquire`. */
export type ResolvedKeyed = Filled<Omit<KeyedOptions, "eventId" | "sequence" | "signal">> &
  Pick<{ [Option in keyof KeyedOptions]-?: KeyedOptions[Option] | undefined }, "eventId" | "sequence" | "signal">;

const NAMES = [
  "eventId",
  "sequence",
  "waitersMax",
  "waitMs",
  "keepMs",
  "leaseMs",
  "maxHoldMs",
  "label",
  "signal",
] as const;
const YEAR_MS = 31_536_000_000;
const WEEK_MS = 604_800_000;

/**
 * Validates the options and fills in defaults.
 *
 * @throws TypeError, RangeError  an invalid option; the message names it
 */
export function resolveKeyed(options: KeyedOptions): ResolvedKeyed {
  const {
    eventId,
    sequence,
    waitersMax = 100,
    waitMs = 10_000,
    keepMs = WEEK_MS,
    ...rest
  } = checkKnown(options, NAMES);
  const { leaseMs = 15_000, maxHoldMs = Infinity, label = "", signal } = rest;
  if (eventId !== undefined) checkBytes("eventId", eventId);
  if (sequence !== undefined) {
    checkWhole("sequence", sequence, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  }
  checkWhole("waitersMax", waitersMax, 1, 1_000_000);
  checkWhole("keepMs", keepMs, 100, YEAR_MS);
  checkLeaseMs(leaseMs);
  checkLabel(label);
  return { eventId, sequence, waitersMax, waitMs, keepMs, leaseMs, maxHoldMs, label, signal };
}

/**
 * Returns the group. The limit keeps the lock name, which combines group and object, within 512 bytes.
 *
 * @throws TypeError, RangeError  `group` is not a string of 1 to 64 bytes
 */
export function checkGroup(group: unknown): string {
  if (typeof group !== "string") throw new TypeError(`group must be a string of 1 to 64 bytes; got ${show(group)}`);
  const bytes = Buffer.byteLength(group);
  if (bytes > 64) throw new RangeError(`group must be 1 to 64 bytes of UTF-8; got ${bytes}`);
  return checkBytes("group", group);
}
