/**
 * Parses and formats numbers the way the server does.
 *
 * Formats with `%.17g`, which preserves every double exactly. Parses strictly, because the server does not accept "1 "
 * or "01" as integers.
 */
import type { Bytes } from "./bytes.js";
import { ReplyError } from "./reply.js";

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
const INTEGER = /^(?:0|-?[1-9]\d{0,18})$/;
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const INFINITE = /^[+-]?inf(?:inity)?$/i;

/** Formats like `%.17g`: 17 significant digits, no trailing zeros. */
export function formatDouble(value: number): string {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? "-0" : String(value);
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const [digits = "", exponentText = "+0"] = roundHalfEven(value).split("e");
  const sign = digits.startsWith("-") ? "-" : "";
  const significant = digits.replace(/[-.]/g, "").replace(/0+$/, "");
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 17) {
    const fraction = significant.length > 1 ? `.${significant.slice(1)}` : "";
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${significant.charAt(0)}${fraction}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${significant}`;
  const whole = significant.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  const fraction = significant.slice(exponent + 1);
  return fraction === "" ? sign + whole : `${sign}${whole}.${fraction}`;
}

/**
 * Returns 17 digits with an exponent. As in C, an exact half is rounded to even; JavaScript rounds it away from zero.
 */
function roundHalfEven(value: number): string {
  const rounded = value.toExponential(16);
  const [digits = "", exponent = ""] = value.toExponential(60).split("e");
  const at = digits.indexOf(".") + 17;
  const isHalf = /^50*$/.test(digits.slice(at));
  return isHalf && Number(digits.charAt(at - 1)) % 2 === 0 ? `${digits.slice(0, at)}e${exponent}` : rounded;
}

/** Parses a 64-bit integer exactly and strictly. Returns undefined if `text` is not one. */
export function parseBigInteger(text: Bytes): bigint | undefined {
  if (!INTEGER.test(text)) return undefined;
  const value = BigInt(text);
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}

/**
 * Parses a 64-bit integer as a double, for counts, indices and times.
 *
 * @throws ReplyError  with the message `complaint`
 */
export function parseInteger(text: Bytes, complaint = "ERR value is not an integer or out of range"): number {
  const value = parseBigInteger(text);
  if (value === undefined) throw new ReplyError(complaint);
  return Number(value);
}

/** Returns the sum. @throws ReplyError  it does not fit in 64 bits */
export function addIntegers(left: bigint, right: bigint): bigint {
  const sum = left + right;
  if (sum > INT64_MAX || sum < INT64_MIN) throw new ReplyError("ERR increment or decrement would overflow");
  return sum;
}

/** Parses a score. Unlike C, refuses hexadecimal floats. @throws ReplyError  it is not a valid number */
export function parseDouble(text: Bytes): number {
  const value = readDouble(text);
  const isOutOfRange = Number.isFinite(value) ? value === 0 && /[1-9]/.test(mantissa(text)) : !INFINITE.test(text);
  if (isOutOfRange) throw new ReplyError("ERR value is not a valid float");
  return value;
}

/** Parses a number. Returns NaN if it is not one, and an infinity if it is too large. */
export function readDouble(text: Bytes): number {
  if (INFINITE.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return DECIMAL.test(text) ? Number(text) : Number.NaN;
}

function mantissa(text: Bytes): string {
  return text.split(/[eE]/)[0] ?? "";
}
