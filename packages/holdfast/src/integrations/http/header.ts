/**
 * The header `Idempotency-Key`. The draft (draft-ietf-httpapi-idempotency-key-header) has a String of RFC 8941, in quotes; most
 * clients send the bare value, and both mean the same key.
 */

/** The key, or what is wrong with the header. */
export type KeyHeader = { readonly key: string } | "missing" | "malformed";

/** The most characters of a key. */
export const KEY_LENGTH_MAX = 255;

const TOKEN = String.raw`[A-Za-z*][\w!#$%&'*+.^\x60|~:/-]*`;
const QUOTED = String.raw`"(?:[ !#-\[\]-~]|\\["\\])*"`;
const BARE_ITEM = String.raw`(?:${QUOTED}|${TOKEN}|-?\d{1,15}(?:\.\d{1,3})?|:[A-Za-z0-9+/=]*:|\?[01])`;
const PARAMETERS = `(?:; *[a-z*][a-z0-9_.*-]*(?:=${BARE_ITEM})?)*`;
/** Parameters may follow a String, and say nothing of the key. */
const STRING = new RegExp(String.raw`^"((?:[ !#-\[\]-~]|\\["\\])*)"${PARAMETERS}$`);
/** The same with the upper half of Latin-1, which clients send although they must not. */
const LENIENT_STRING = new RegExp(String.raw`^"((?:[ !#-\[\]-~\x80-\xff]|\\["\\])*)"${PARAMETERS}$`);
/** No comma: a proxy joins several headers of one name with it. */
const BARE = /^[!#-+\--~\x80-\xff][ -+\--~\x80-\xff]*$/;

/**
 * Reads the header.
 *
 * @param values    one for each line of the header, as Latin-1
 * @param isStrict  whether only a String of RFC 8941 will do
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
