/**
 * Describes how the clients of another system write and read the value of a lock.
 *
 * The dialects below come from published articles. Each is a plain object, and you can declare your own.
 */
import { checkKey, checkName, checkWhole, show } from "holdfast/internal";

/** A lock whose value is the time at which it ends, by the clock of the client that wrote it. */
export interface DeadlineDialect {
  /** Text before the name in the key, including any key prefix that the other clients configure. Empty for none. */
  readonly prefix: string;
  /** Text after the name in the key. Empty for none. */
  readonly suffix: string;
  /** Unit of the value: seconds or milliseconds since 1970. */
  readonly unit: "s" | "ms";
  /**
   * The longest lease that the other clients write, without padding; also the default of Holdfast's leases. A value
   * that ends later indicates a clock that is ahead. A value that ends earlier than Holdfast's may be from a client
   * that came too late. Whole milliseconds, 100 to 31,536,000,000.
   */
  readonly leaseMs: number;
  /** What the other clients add to the lease, in ms. A multiple of the unit, 0 to 31,536,000,000. */
  readonly paddingMs: number;
  /**
   * Additional padding when they take over an expired lock, in ms. A multiple of the unit, 0 to 31,536,000,000.
   * Default: 0.
   */
  readonly takeoverPaddingMs?: number | undefined;
  /** Whether they take over a lock when its time is `"reached"` (value <= now) or has `"passed"` (value < now). */
  readonly takeoverWhen: "reached" | "passed";
  /**
   * How Holdfast's values differ from theirs, so that a foreign client that compares values never mistakes one for its
   * own: a `"fraction"` of six digits if they cast the number or read floating point, a `"leading-zero"` if they parse
   * whole numbers, `"none"` if it is unknown how they parse. `"fraction"` requires the unit `"s"`.
   */
  readonly mark: "fraction" | "leading-zero" | "none";
  /**
   * Whether a foreign client that comes too late to take over an expired lock overwrites its value anyway, as with
   * GETSET or SET … GET outside a script.
   */
  readonly losersWrite: boolean;
}

/** A lock whose value is a unique string and that ends when its key expires: SET key value NX PX. */
export interface UniqueDialect {
  /** Text before the name in the key. Empty for none. */
  readonly prefix: string;
  /** Text after the name in the key. Empty for none. */
  readonly suffix: string;
  /** The value is not a time. */
  readonly unit: "none";
  /** Lease of the other clients; also the default of Holdfast's leases. Whole milliseconds, 100 to 31,536,000,000. */
  readonly leaseMs: number;
}

/** The format that both sides of a shared lock must agree on. */
export type TimestampDialect = DeadlineDialect | UniqueDialect;

/**
 * PHP: SETNX, and `SET … GET` to take over. Value: now + 30, whole seconds; no expiry. Redis 6.2 or later.
 *
 * The prefix in the article is a placeholder. Set your own: `{ ...phpSetGet, prefix: "shop_lock_" }`. If PHP clients
 * poll every second or faster, they hardly ever take over the lock of a crashed holder, because each attempt postpones
 * its end. Their release deletes the key even if another client holds the lock.
 */
export const phpSetGet: DeadlineDialect = Object.freeze({
  prefix: "your_lock_prefix_",
  suffix: "",
  unit: "s",
  leaseMs: 30_000,
  paddingMs: 0,
  takeoverWhen: "reached",
  mark: "fraction",
  losersWrite: true,
});

/**
 * PHP with a Lua script: SETNX, or GETSET once expired, in one step. Value: now + lease + 1, whole seconds; the key
 * expires a second after the lease.
 *
 * The release of PHP clients deletes only expired locks. So a lock that they release in time stays until its key
 * expires. Holdfast cannot prevent that.
 */
export const phpLua: DeadlineDialect = Object.freeze({
  prefix: "",
  suffix: "",
  unit: "s",
  leaseMs: 3_000,
  paddingMs: 1_000,
  takeoverPaddingMs: 4_000,
  takeoverWhen: "reached",
  mark: "fraction",
  losersWrite: false,
});

/**
 * Java: SETNX, and GETSET to take over. Value: now + lease + 1, milliseconds; no expiry. The key is the name plus
 * `_lock`.
 *
 * The release of Java clients deletes the key even if another client holds the lock. If a lock is released at an
 * unlucky moment, a waiting Java client leaves behind a lock without a holder, which blocks others for one lease.
 */
export const javaGetSet: DeadlineDialect = Object.freeze({
  prefix: "",
  suffix: "_lock",
  unit: "ms",
  leaseMs: 60_000,
  paddingMs: 1,
  takeoverWhen: "passed",
  mark: "leading-zero",
  losersWrite: true,
});

/**
 * C++: SETNX, and GETSET to take over. Value: now + 3, whole seconds; no expiry.
 *
 * The release of C++ clients deletes the key even if another client holds the lock. They also leave behind locks
 * without a holder, like `javaGetSet`.
 */
export const cppGetSet: DeadlineDialect = Object.freeze({
  prefix: "",
  suffix: "",
  unit: "s",
  leaseMs: 3_000,
  paddingMs: 0,
  takeoverWhen: "passed",
  mark: "none",
  losersWrite: true,
});

/**
 * Java: SET key uuid NX PX 30000, with a comparison before DEL and PEXPIRE. Sharing such a lock does not reduce safety.
 */
export const javaUuid: UniqueDialect = Object.freeze({ prefix: "", suffix: "", unit: "none", leaseMs: 30_000 });

const UNITS: readonly unknown[] = ["s", "ms", "none"];
const LONGEST_LEASE_MS = 31_536_000_000;
const COMMON = ["prefix", "suffix", "unit", "leaseMs"];
const OF_DEADLINES = ["paddingMs", "takeoverPaddingMs", "takeoverWhen", "mark", "losersWrite"];

/**
 * Checks a dialect, which may be user-defined, and returns it.
 *
 * @throws TypeError, RangeError  invalid or unknown field; the message names `dialect.<field>`, its range and the value
 */
export function checkDialect(dialect: unknown): TimestampDialect {
  if (dialect === null || typeof dialect !== "object" || Array.isArray(dialect)) {
    throw new TypeError(
      `dialect must be one from @holdfast/interop/timestamp, or an object with the same fields; got ${show(dialect)}`,
    );
  }
  const given = dialect as Partial<DeadlineDialect>;
  oneOf("unit", given.unit, UNITS);
  const isDeadline = given.unit !== ("none" as string);
  const known = isDeadline ? [...COMMON, ...OF_DEADLINES] : COMMON;
  for (const field of Object.keys(given)) {
    if (!known.includes(field)) {
      const of = isDeadline ? "" : ` of unit "none"`;
      throw new TypeError(`there is no field dialect.${field}; the fields of a dialect${of} are ${known.join(", ")}`);
    }
  }
  for (const field of ["prefix", "suffix"] as const) {
    if (typeof given[field] !== "string") {
      throw new TypeError(`dialect.${field} must be a string, empty if there is none; got ${show(given[field])}`);
    }
  }
  checkWhole("dialect.leaseMs", given.leaseMs, 100, LONGEST_LEASE_MS);
  if (isDeadline) checkDeadline(given);
  // The cast is safe because every field was checked.
  return dialect as TimestampDialect;
}

function checkDeadline({
  unit,
  paddingMs,
  takeoverPaddingMs = 0,
  takeoverWhen,
  mark,
  losersWrite,
}: Partial<DeadlineDialect>): void {
  const unitMs = unit === "s" ? 1_000 : 1;
  for (const [field, value] of Object.entries({ paddingMs, takeoverPaddingMs })) {
    checkWhole(`dialect.${field}`, value, 0, LONGEST_LEASE_MS);
    if (Number(value) % unitMs !== 0) {
      throw new RangeError(`dialect.${field} must be a multiple of 1000, because dialect.unit is "s"; got ${value}`);
    }
  }
  oneOf("takeoverWhen", takeoverWhen, ["reached", "passed"]);
  oneOf("mark", mark, ["fraction", "leading-zero", "none"]);
  if (mark === "fraction" && unit === "ms") {
    throw new RangeError(`dialect.mark must be "leading-zero" or "none" for whole milliseconds; got "fraction"`);
  }
  if (typeof losersWrite !== "boolean") {
    throw new TypeError(`dialect.losersWrite must be true or false; got ${show(losersWrite)}`);
  }
}

function oneOf(field: string, value: unknown, allowed: readonly unknown[]): void {
  if (allowed.includes(value)) return;
  const words = allowed.map((word) => `"${String(word)}"`);
  throw new TypeError(
    `dialect.${field} must be ${words.slice(0, -1).join(", ")} or ${words.at(-1)}; got ${show(value)}`,
  );
}

/**
 * Returns the key of the lock, as the other clients use it.
 *
 * @throws TypeError, RangeError  `name` or the resulting key is invalid
 */
export function keyOf({ prefix, suffix }: TimestampDialect, name: unknown): string {
  return checkKey(prefix + checkName(name) + suffix);
}
