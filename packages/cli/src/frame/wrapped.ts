/** Wraps lists of words in help texts. */

/** The longest line of a help text. The manual page indents the text by 3 columns, and the result must fit in 80. */
export const HELP_COLUMNS = 77;
/** The column where the descriptions of flags begin. */
const DESCRIPTIONS_AT = 26;

/**
 * Joins a lead and a list of words into lines that fit.
 *
 * @param indent  the indentation of all lines after the first; the width of the first line is checked as if it were
 *        indented too
 */
export function wrapped(lead: string, words: readonly string[], indent: number = DESCRIPTIONS_AT): string {
  const lines = [lead];
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`;
    if (indent + longer.length > HELP_COLUMNS) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.join(`\n${" ".repeat(indent)}`);
}
