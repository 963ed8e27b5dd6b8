// @ts-check
/**
 * Parses the header of a script: its inputs, and the replies that it may send.
 *
 *     --[[
 *       mutex/extend: extend the lease, if the owner still holds it.
 *
 *       Prose.
 *
 *       KEYS[1] lock   string, the owner
 *       ARGV[1] owner  id of the claim
 *       REPLY   1              extended
 *               {0, holderMs}  lost: prose
 *     ]]
 *
 * Lines that start with KEYS[n], ARGV[n] or REPLY in the third column are the signature. Below REPLY, a line that starts
 * in the column of the first reply describes another reply. A line that is indented further is prose.
 *
 * If a script can grant a lock, its header has the line `GRANTS  by itself`, or `GRANTS  by hand-off` if only the
 * hand-off can. In the second case there is also a form without the hand-off, for a server that may not grant yet.
 *
 * If a script does nothing but extend a lease, and replies 1 if it did, its header has the line `RENEWS`.
 *
 * If a script works on any number of locks, its header has the line `KEYS[...] locks  prose` after its other keys. Only
 * such a script may compute the n of KEYS[n]. TypeScript passes the list as `"locks..."`. Proxies that analyze scripts
 * refuse it, so behind such a proxy the lock must work without this script.
 */

/** @typedef {{ code: number | null, bare: boolean, outcome: string, values: string[], rest: string | null }} Form */
/** @typedef {"by itself" | "by hand-off" | null} Grants */
/** @typedef {{ summary: string, keys: string[], args: string[], replies: Form[], grants: Grants, renews: boolean }} Signature */

const WORD = /^[a-z]\w*$/;
const REST_MARK = "[...]";

/**
 * @param {string} file
 * @param {string} name
 * @param {string} header
 * @returns {Signature}
 */
export function readHeader(file, name, header) {
  const lines = header.split("\n");
  const replyAt = lines.findIndex((line) => /^ {2}REPLY\b/.test(line));
  if (replyAt < 0) refuse(file, "its header must say what the script replies");

  const inputs = lines.slice(0, replyAt);
  const keys = [...inputNames(file, inputs, "KEYS"), ...restOfKeys(file, inputs)];
  const args = inputNames(file, inputs, "ARGV");
  unique(file, [...keys, ...args], (word) => `two inputs are called ${word}`);

  const replies = readReplies(file, lines.slice(replyAt));
  const grants = readGrants(file, inputs);
  const renews = inputs.includes("  RENEWS");
  if (renews && !replies.some(({ code, values }) => code === 1 && values.length === 0))
    refuse(file, "it RENEWS, so its reply must be 1 when it has");
  return { summary: (lines[0] ?? "").slice(`  ${name}: `.length), keys, args, replies, grants, renews };
}

/**
 * @param {string} file
 * @param {string[]} lines
 * @returns {Grants}
 */
function readGrants(file, lines) {
  const marks = lines.filter((line) => line.startsWith("  GRANTS")).map((line) => line.slice("  GRANTS".length).trim());
  const [mark = null] = marks;
  if (marks.length > 1 || (mark !== null && mark !== "by itself" && mark !== "by hand-off"))
    refuse(file, `it GRANTS by itself or by hand-off, and says so once; not "${marks.join(", ")}"`);
  return mark;
}

/**
 * @param {string} file
 * @param {string[]} lines
 * @param {"KEYS" | "ARGV"} table
 */
function inputNames(file, lines, table) {
  return lines
    .filter((line) => line.startsWith(`  ${table}[`) && !line.startsWith(`  KEYS${REST_MARK}`))
    .map((line, i) => {
      const [, index, word = ""] = /^ {2}\w+\[(\d+)\] +(\w+)(?: |$)/.exec(line) ?? [];
      if (!WORD.test(word)) refuse(file, `this is not an input: "${line.trim()}"`);
      if (Number(index) !== i + 1) refuse(file, `${table}[${index}] is out of order in the header`);
      return word;
    });
}

/**
 * @param {string} file
 * @param {string[]} lines
 */
function restOfKeys(file, lines) {
  const at = lines.findIndex((line) => line.startsWith(`  KEYS${REST_MARK}`));
  if (at < 0) return [];
  const [, word = ""] = /^ {2}KEYS\[\.\.\.\] +(\w+)(?: |$)/.exec(lines[at] ?? "") ?? [];
  if (!WORD.test(word)) refuse(file, `this is not an input: "${(lines[at] ?? "").trim()}"`);
  if (lines.slice(at + 1).some((line) => line.startsWith("  KEYS[")))
    refuse(file, "KEYS[...] comes after all other keys");
  return [`${word}...`];
}

/** Whether the last of the keys stands for any number of them. @param {string[]} keys */
export function endsInRest(keys) {
  return keys.at(-1)?.endsWith("...") ?? false;
}

/**
 * @param {string} file
 * @param {string[]} lines
 */
function readReplies(file, lines) {
  const first = (lines[0] ?? "").replace("REPLY", "     ");
  const column = first.search(/\S/);
  /** @type {Form[]} */
  const forms = [];
  for (const line of [first, ...lines.slice(1)]) {
    const at = line.search(/\S/);
    if (at === column) forms.push(readForm(file, line.trim()));
    else if (at < column) refuse(file, `only answers may follow REPLY: "${line.trim()}"`);
  }

  const bare = forms.filter((form) => form.bare);
  if (forms.filter((form) => form.code === null).length > 1) refuse(file, "two answers are one bare number");
  if (bare.length > 1 && bare.some((form) => form.code === null))
    refuse(file, "a bare code cannot be told from the bare number; write it as {code}");
  unique(
    file,
    forms.flatMap(({ code }) => code ?? []),
    (code) => `two answers have the code ${code}`,
  );
  return forms;
}

/**
 * One answer, such as `{1, token}  granted  prose`, `0  lost` or `token  granted`.
 *
 * @param {string} file
 * @param {string} line
 * @returns {Form}
 */
function readForm(file, line) {
  const [, shape = "", outcome = ""] = /^(\{[^}]*\}|\w+) +([a-z][\w-]*)(?![^\s:;,.])/.exec(line) ?? [];
  const bare = !shape.startsWith("{");
  const [head = "", ...names] = (bare ? shape : shape.slice(1, -1)).split(",").map((word) => word.trim());
  const rest = names.at(-1)?.endsWith("...") ? (names.pop() ?? "").slice(0, -3) : null;
  const isNumber = bare && WORD.test(head);

  const words = [...(isNumber ? [head] : []), ...names, ...(rest === null ? [] : [rest])];
  if (outcome === "" || !(isNumber || /^\d+$/.test(head)) || !words.every((word) => WORD.test(word)))
    refuse(file, `this is not an answer: "${line}"`);
  unique(file, ["outcome", ...words], (word) => `"${line}" says ${word} twice, or calls a value "outcome"`);
  return { code: isNumber ? null : Number(head), bare, outcome, values: isNumber ? [head] : names, rest };
}

/**
 * @template {string | number} T
 * @param {string} file
 * @param {T[]} words
 * @param {(word: T) => string} reason
 */
function unique(file, words, reason) {
  for (const [i, word] of words.entries()) if (words.indexOf(word) !== i) refuse(file, reason(word));
}

/**
 * @param {string} file
 * @param {string} reason
 * @returns {never}
 */
export function refuse(file, reason) {
  throw new Error(`${file}: ${reason}`);
}
