// @ts-check
/** Reads the flags from the help text of a verb, so that the completions need no second list. */

/**
 * @typedef {{ readonly type: "string" | "boolean", readonly short?: string, readonly multiple?: boolean, readonly bare?: string }} OptionSpec
 * @typedef {{ name: string, short: string | undefined, takesValue: boolean, isOptional: boolean, isRepeatable: boolean,
 *   placeholder: string, words: readonly string[], isFile: boolean, description: string }} Flag
 */

/**
 * Matches a line of help that describes a flag: `  -o, --columns COLS      with commas`. Only the `--flag` is captured,
 * because the options contain the short forms.
 */
const FLAG_LINE = /^ {2,6}(?:-\w, )*--([a-z-]+)(?:[ =](\[?[^\s]+))?(?: {2,}(\S.*))?$/;

/** Placeholders in the help for a value from a fixed list. */
const LISTED = /^(K|O|COLS)$/;

/**
 * Returns all flags of a verb, in the order of its options.
 *
 * @param {Readonly<Record<string, OptionSpec>>} options
 * @param {string} help
 * @returns {Flag[]}
 */
export function flagsOf(options, help) {
  const lines = help.split("\n");
  return Object.entries(options).map(([option, spec]) => {
    // A single letter is an alias of another flag and has no long form.
    const name = option.length === 1 ? "" : option;
    const at = lines.findIndex((line) => FLAG_LINE.exec(line)?.[1] === name);
    const [, , placed = "", first = ""] = FLAG_LINE.exec(lines[at] ?? "") ?? [];
    const said = at < 0 ? "" : [first, ...continued(lines.slice(at + 1))].join(" ").trim();
    const inline = new RegExp(`--${option}[ =](\\[?[A-Za-z][^\\s,;()]*)`).exec(help)?.[1] ?? "";
    const value = (placed || inline).replace(/[[\]]/g, "");
    // The values are listed at the end of the line: `--kind K   only this kind: mutex semaphore`.
    const [, list = ""] = (LISTED.test(value) && /: ([a-z-]+(?: [a-z-]+)+)$/.exec(said)) || [];
    const listed = value.includes("|") ? value.split("|") : list.split(" ");
    const isFile = value === "F";
    return {
      name,
      short: spec.short ?? (name === "" ? option : undefined),
      takesValue: spec.type === "string",
      isOptional: spec.bare !== undefined,
      isRepeatable: spec.multiple === true,
      placeholder: value.includes("|") || value === "" ? name.toUpperCase() : value,
      words: spec.type === "string" ? listed.filter((word) => /^[a-z-]+$/.test(word)) : [],
      isFile,
      description: at < 0 ? (isFile ? "a file" : option.replaceAll("-", " ")) : firstWords(said),
    };
  });
}

/**
 * Returns the lines that continue a description.
 * @param {readonly string[]} lines
 */
function continued(lines) {
  const end = lines.findIndex((line) => !/^ {17,}\S/.test(line));
  return lines.slice(0, end < 0 ? lines.length : end).map((line) => line.trim());
}

/**
 * Shortens a description to the words that distinguish the flag from others.
 * @param {string} text
 */
function firstWords(text) {
  const [first = ""] = text.trim().split(/[;:.](?:\s|$)/);
  // Remove a parenthesis that was cut in half.
  return first
    .replace(/^\((.*)\)$/, "$1")
    .replace(/ \([^)]*$/, "")
    .trim();
}
