/** What a caller of `keyed` may ask for, its defaults, and the checks. */
import type { Filled } from "../../internal.js";
import { checkKnown, checkLabel, checkLeaseMs, checkWhole, show } from "../../internal.js";
import { checkBytes } from "../names.js";

/** How an event is to be applied. */
export interface KeyedOptions {
  /**
   * What the sender calls the event, the same however often it delivers it. An event that was applied is not applied again for
   * `keepMs`. 1 to 255 bytes. Without it nothing is a duplicate.
   */
  readonly eventId?: string | undefined;

  /**
   * Its place in the sender's order, such as its time or a version. One that is lower than the last that was applied to the
   * object is outdated; an equal one of another id is applied. A safe integer. Without it nothing is outdated.
   */
  readonly sequence?: number | undefined;

  /**
   * How many callers of this Holdfast may wait for the same object; one more is refused with `full`. Larger rides out longer
   * bursts; smaller answers sooner that the sender should come again. Whole number, 1 to 1,000,000.
   * @default 100
   */
  readonly waitersMax?: number | undefined;

  /** Longest wait for the object. Milliseconds, 0 or more; Infinity never gives up. @default 10_000 */
  readonly waitMs?: number | undefined;

  /**
   * How long it is remembered what was applied: longer than the sender goes on delivering. Shorter takes less memory. Whole
   * milliseconds, 100 to 31,536,000,000.
   * @default 604_800_000, a week
   */
  readonly keepMs?: number | undefined;

  /**
   * Length of the lease, which is renewed while the work runs. Shorter lets the next event follow sooner after a crash. Whole
   * milliseconds, 100 to 31,536,000,000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /** Work that runs for longer counts as lost: its signal aborts, and the next event follows. @default Infinity */
  readonly maxHoldMs?: number | undefined;

  /** Free text shown to whoever waits, at most 256 bytes. */
  readonly label?: string | undefined;

  /** Ends the wait, and rejects with its reason. The work has a signal of its own: `lease.signal`. */
  readonly signal?: AbortSignal | undefined;
}

/** The options with their defaults, checked; but for those that the acquire checks. */
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

/** @throws TypeError, RangeError  a wrong option, by its name */
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

/** @throws TypeError, RangeError  unless it is a string of 1 to 64 bytes: with an object in it, a name has 512 at most */
export function checkGroup(group: unknown): string {
  if (typeof group !== "string") throw new TypeError(`group must be a string of 1 to 64 bytes; got ${show(group)}`);
  const bytes = Buffer.byteLength(group);
  if (bytes > 64) throw new RangeError(`group must be 1 to 64 bytes of UTF-8; got ${bytes}`);
  return checkBytes("group", group);
}
