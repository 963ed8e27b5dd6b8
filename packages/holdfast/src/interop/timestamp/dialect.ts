/**
 * How the clients of another system write the time at which a lock ends into its value, and how they read it.
 *
 * The four dialects below are those of four published articles; each is data, and anybody may declare one more.
 */
import { checkKey, checkName, checkWhole, show } from "../../internal.js";

/** A lock whose value is the time at which it ends, by the clock of whoever wrote it. */
export interface DeadlineDialect {
  /** What stands before and after the name in the key, as the other clients spell it, key prefix options included. */
  readonly prefix: string;
  readonly suffix: string;
  /** What the number counts since 1970. */
  readonly unit: "s" | "ms";
  /**
   * The longest lease that the other clients write, in ms, without padding; the default for ours as well. A value that ends
   * later shows a clock that is ahead, and a value that ends earlier than ours may be that of a client that came too late.
   */
  readonly leaseMs: number;
  /** What they add to the lease, in whole units, in ms. */
  readonly paddingMs: number;
  /** What they add to that once more where they take over an expired lock, in ms. Absent: nothing. */
  readonly takeoverPaddingMs?: number | undefined;
  /** Whether they take a lock over when its time is `"reached"` (value <= now), or only when it has `"passed"` (value < now). */
  readonly takeoverWhen: "reached" | "passed";
  /**
   * What tells our values from theirs, so that their comparison of values never takes ours for one of theirs: a `"fraction"`
   * of six digits, if they read the number with a cast or as floating point; a `"leading-zero"`, if they parse whole
   * numbers; `"none"`, if it is not known how they parse.
   */
  readonly mark: "fraction" | "leading-zero" | "none";
  /**
   * Whether one of them that comes too late to take over an expired lock has overwritten its value by then, as with GETSET or
   * SET … GET outside of a script.
   */
  readonly losersWrite: boolean;
}

/** A lock whose value is a unique text, and which ends with its key: SET key value NX PX. */
export interface UniqueDialect {
  readonly prefix: string;
  readonly suffix: string;
  readonly unit: "none";
  /** Lease of the other clients, in ms; the default for ours as well. */
  readonly leaseMs: number;
}

/** What both sides of a shared lock have to agree upon. */
export type TimestampDialect = DeadlineDialect | UniqueDialect;

/**
 * PHP: SETNX, and `SET … GET` to take over. Value: now + 30, whole seconds; no expiry. Redis 6.2 or later.
 *
 * Its prefix in the article is a placeholder: `{ ...phpSetGet, prefix: "shop_lock_" }`. A lock whose holder died is hardly ever
 * taken over by clients that poll every second or faster, since each of them puts off its end; and their release deletes
 * whatever is there.
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
 * PHP with a Lua script: SETNX, or GETSET once expired, in one step. Value: now + lease + 1, whole seconds; the key expires a
 * second after the lease.
 *
 * Their release deletes only what is over: a lock that one of them releases in time stays until its key expires, and nobody
 * else can help that.
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
 * Java: SETNX, and GETSET to take over. Value: now + lease + 1, milliseconds; no expiry; the key is the name and `_lock`.
 *
 * Their release deletes whatever is there, and a waiter of theirs that finds a lock released at the wrong moment leaves a lock
 * behind that nobody holds, for a lease.
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
 * Its release deletes whatever is there, and it leaves locks behind that nobody holds, as the Java one does.
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

/** Java: SET key uuid NX PX 30000, compare before DEL and before PEXPIRE. Nothing is given up by sharing it. */
export const javaUuid: UniqueDialect = Object.freeze({ prefix: "", suffix: "", unit: "none", leaseMs: 30_000 });

const UNITS: readonly unknown[] = ["s", "ms", "none"];
const LONGEST_LEASE_MS = 31_536_000_000;
const COMMON = ["prefix", "suffix", "unit", "leaseMs"];
const OF_DEADLINES = ["paddingMs", "takeoverPaddingMs", "takeoverWhen", "mark", "losersWrite"];

/**
 * Checks a dialect that may have been declared by a user.
 *
 * @throws TypeError, RangeError  a wrong or unknown field; the message names it as `dialect.<field>`, its range and what came
 */
export function checkDialect(dialect: unknown): TimestampDialect {
  if (dialect === null || typeof dialect !== "object" || Array.isArray(dialect)) {
    throw new TypeError(`dialect must be one of holdfast/timestamp or an object like them; got ${show(dialect)}`);
  }
  const given = dialect as Partial<DeadlineDialect>;
  oneOf("unit", given.unit, UNITS);
  const isDeadline = given.unit !== ("none" as string);
  const known = isDeadline ? [...COMMON, ...OF_DEADLINES] : COMMON;
  for (const field of Object.keys(given)) {
    if (!known.includes(field)) {
      const of = isDeadline ? "" : ` of unit "none"`;
      throw new TypeError(`there is no field dialect.${field}; those of a dialect${of} are ${known.join(", ")}`);
    }
  }
  for (const field of ["prefix", "suffix"] as const) {
    if (typeof given[field] !== "string") {
      throw new TypeError(`dialect.${field} must be a string, empty if there is none; got ${show(given[field])}`);
    }
  }
  checkWhole("dialect.leaseMs", given.leaseMs, 100, LONGEST_LEASE_MS);
  if (isDeadline) checkDeadline(given);
  // Every field was checked by its name.
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
      throw new RangeError(`dialect.${field} must be whole seconds, because the value counts seconds; got ${value}`);
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
 * The key of the lock, as the other clients spell it.
 *
 * @throws TypeError, RangeError  the name, or the key that it makes, is none
 */
export function keyOf({ prefix, suffix }: TimestampDialect, name: unknown): string {
  return checkKey(prefix + checkName(name) + suffix);
}
