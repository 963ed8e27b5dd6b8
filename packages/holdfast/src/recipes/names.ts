/** Names of what recipes keep, which come from data: checked, and escaped so that no two pairs have the same. */
import { show } from "../internal.js";

/** A key in its scope: no two pairs have the same name, since an encoded scope has no slash. */
export function nameOf(scope: string | undefined, key: string): string {
  return `${scope === undefined ? "" : encodeURIComponent(scope)}/${key}`;
}

/** The key and the scope of which `nameOf` has made that name; undefined if it has not. */
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

/** @throws TypeError, RangeError  unless it is a string of 1 to 255 bytes */
export function checkBytes(option: string, value: unknown): string {
  if (typeof value !== "string")
    throw new TypeError(`${option} must be a string of 1 to 255 bytes; got ${show(value)}`);
  const bytes = Buffer.byteLength(value);
  if (bytes < 1 || bytes > 255) throw new RangeError(`${option} must be 1 to 255 bytes of UTF-8; got ${bytes}`);
  if (/\p{Surrogate}/u.test(value)) throw new RangeError(`${option} must be well-formed Unicode; got half of a pair`);
  return value;
}
