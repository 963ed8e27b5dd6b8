// @ts-check
/**
 * Which Lua may stand in the body of a script: what a server (5.1) and the embedded store (5.4) both run with
 * the same result, with keys as literal KEYS[n] in calls, since some proxies read scripts and refuse the rest.
 *
 * It looks at code only: comments are cut and strings emptied first, so prose may name what code may not.
 */

/** @type {ReadonlyArray<readonly [RegExp, string]>} */
const FORBIDDEN = [
  [/\[=*\[/, "long brackets; the body is sent without its comment lines, and they would be cut too"],
  [/\b(?:table\s*\.\s*)?unpack\b/, "unpack"],
  [/\bmath\s*\.\s*pow\b/, "math.pow"],
  [/\bgoto\b/, "goto"],
  [/\/\//, "//"],
  [/&|\||~(?!=)|<<|>>/, "a bit operator"],
  [/\bbit(?:32)?\s*\./, "the bit library"],
  [/\b(?:loadstring|setfenv|getfenv|table\s*\.\s*(?:getn|maxn|foreachi?)|math\s*\.\s*mod)\b/, "a word of 5.1 alone"],
  [/\b(?:utf8\s*\.|rawlen\b|table\s*\.\s*move\b|math\s*\.\s*(?:type|tointeger|ult)\b)/, "a word of 5.4 alone"],
  [/\bstring\s*\.\s*(?:pack|packsize)\b|:pack\b/, "a word of 5.4 alone"],
];

/**
 * @param {string} body
 * @param {(reason: string) => never} refuse
 * @param {boolean} [computesKeys]  whether the header says that there may be any number of keys
 */
export function checkBody(body, refuse, computesKeys = false) {
  const code = stripped(body, true);
  // Before comments are cut: a long comment is one of them.
  if (/--\[=*\[/.test(stripped(body, true, true))) refuse(`outside the common subset of Lua: ${FORBIDDEN[0]?.[1]}`);
  for (const [pattern, what] of FORBIDDEN) {
    if (pattern.test(code)) refuse(`outside the common subset of Lua: ${what}`);
  }

  for (const table of computesKeys ? ["ARGV"] : ["KEYS", "ARGV"]) {
    const other = code.replace(new RegExp(`\\b${table}\\[[1-9]\\d*\\]`, "g"), "");
    if (new RegExp(`\\b${table}\\b`).test(other)) refuse(`${table} may be used as a literal ${table}[n] only`);
  }
  if (/[^,\s]\s*KEYS\[/.test(code)) refuse("a key stands as a literal KEYS[n] in redis.call, under no other name");
  if (/\bp?call\s*\(\s*(['"])S?PUBLISH\1\s*,\s*KEYS\b/i.test(stripped(body, false)))
    refuse("a channel goes under ARGV: clients prefix keys but not channels");
}

/**
 * @param {string} body
 * @returns {{ KEYS: Set<number>, ARGV: Set<number> }}
 */
export function inputsUsed(body) {
  const code = stripped(body, true);
  /** @param {string} table */
  const used = (table) =>
    new Set(Array.from(code.matchAll(new RegExp(`\\b${table}\\[(\\d+)\\]`, "g")), (m) => Number(m[1])));
  return { KEYS: used("KEYS"), ARGV: used("ARGV") };
}

/**
 * @param {string} lua
 * @param {boolean} emptyStrings
 * @param {boolean} [keepComments]
 */
function stripped(lua, emptyStrings, keepComments = false) {
  return lua.replace(/(["'])(?:\\[\s\S]|(?!\1)[^\\\n])*\1|--.*/g, (match, quote) => {
    if (quote === undefined) return keepComments ? match : "";
    return emptyStrings ? quote + quote : match;
  });
}
