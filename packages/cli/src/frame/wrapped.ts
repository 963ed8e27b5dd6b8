/** Lists of words in help texts. */

/** The longest line of a help text: the manual page indents it by 3, on a terminal of 80 columns. */
export const HELP_COLUMNS = 77;
/** Where the descriptions of flags begin. */
const DESCRIPTIONS_AT = 26;

/**
 * A lead and a list of words, in lines that fit.
 *
 * @param indent  where the lines after the first begin; the first line is checked as if it began there too
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
