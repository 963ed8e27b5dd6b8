/**
 * Reads the header `Idempotency-Key`. The draft (draft-ietf-httpapi-idempotency-key-header) requires a quoted String of
 * RFC 8941. Most clients send the bare value. Both mean the same key.
 */

/** The key, or the problem with the header. */
export type KeyHeader = { readonly key: string } | "missing" | "malformed";

/** The maximum number of characters in a key. */
export const KEY_LENGTH_MAX = 255;

const TOKEN = String.raw`[A-Za-z*][\w!#$%&'*+.^\x60|~:/-]*`;
const QUOTED = String.raw`"(?:[ !#-\[\]-~]|\\["\\])*"`;
const BARE_ITEM = String.raw`(?:${QUOTED}|${TOKEN}|-?\d{1,15}(?:\.\d{1,3})?|:[A-Za-z0-9+/=]*:|\?[01])`;
const PARAMETERS = `(?:; *[a-z*][a-z0-9_.*-]*(?:=${BARE_ITEM})?)*`;
/** A String of RFC 8941. Parameters may follow it; they are not part of the key. */
const STRING = new RegExp(String.raw`^"((?:[ !#-\[\]-~]|\\["\\])*)"${PARAMETERS}$`);
/** A String that may also contain the upper half of Latin-1. RFC 8941 forbids it, but clients send it. */
const LENIENT_STRING = new RegExp(String.raw`^"((?:[ !#-\[\]-~\x80-\xff]|\\["\\])*)"${PARAMETERS}$`);
/** A bare value. It contains no comma because proxies use a comma to join headers with the same name. */
const BARE = /^[!#-+\--~\x80-\xff][ -+\--~\x80-\xff]*$/;

/**
 * Reads the key from the header.
 *
 * @param values    the value of each header line, as Latin-1
 * @param isStrict  whether to accept only a String of RFC 8941
 */
export function readKeyHeader(values: readonly string[], isStrict: boolean): KeyHeader {
  const [value] = values;
  if (value === undefined) return "missing";
  if (values.length > 1) return "malformed";
  const key = keyOf(value.replace(/^[ \t]+|[ \t]+$/g, ""), isStrict);
  return key === undefined || key.length < 1 || key.length > KEY_LENGTH_MAX ? "malformed" : { key };
}

function keyOf(text: string, isStrict: boolean): string | undefined {
  if (text.startsWith('"') || isStrict) {
    return (isStrict ? STRING : LENIENT_STRING).exec(text)?.[1]?.replace(/\\(["\\])/g, "$1");
  }
  return BARE.test(text) ? text : undefined;
}
