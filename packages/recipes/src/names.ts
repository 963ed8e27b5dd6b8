/** Validates names that come from data, and combines scope and key so that different pairs have different names. */
import { show } from "holdfast/internal";

/** Combines a scope and a key. Different pairs have different names, because an encoded scope contains no slash. */
export function nameOf(scope: string | undefined, key: string): string {
  return `${scope === undefined ? "" : encodeURIComponent(scope)}/${key}`;
}

/** Returns the key and the scope of a name from `nameOf`, or undefined for any other name. */
export function partsOf(name: string): { readonly key: string; readonly scope: string | undefined } | undefined {
  const slash = name.indexOf("/");
  if (slash < 0 || slash === name.length - 1) return undefined;
  try {
    const scope = slash === 0 ? undefined : decodeURIComponent(name.slice(0, slash));
    return { key: name.slice(slash + 1), scope };
  } catch {
    return undefined;
  }
}

/** Returns `value`. @throws TypeError, RangeError  `value` is not a well-formed string of 1 to 255 bytes */
export function checkBytes(option: string, value: unknown): string {
  if (typeof value !== "string")
    throw new TypeError(`${option} must be a string of 1 to 255 bytes; got ${show(value)}`);
  const bytes = Buffer.byteLength(value);
  if (bytes < 1 || bytes > 255) throw new RangeError(`${option} must be 1 to 255 bytes of UTF-8; got ${bytes}`);
  if (/\p{Surrogate}/u.test(value))
    throw new RangeError(`${option} must be well-formed Unicode; got half of a surrogate pair`);
  return value;
}
