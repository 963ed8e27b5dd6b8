/**
 * Answers requests for help and the version with texts that were generated when the package was built.
 * frame/dispatch.ts prints the same texts, but only after the whole command is loaded, which takes longer.
 */

/** The texts, which scripts/pack.mjs writes next to the command. */
export interface Answers {
  readonly version: string;
  readonly help: string;
  /** The help text of each verb, by verb. */
  readonly verbs: Readonly<Record<string, string>>;
}

const ASKS_HELP = /^(?:--help|-h)$/;

/**
 * Returns the text if the words ask only for help or the version; undefined if the full command must handle them.
 *
 * @param words    without the program's own name
 * @param answers  reads the texts; called only if the words may ask for one of them
 */
export function answerTo(words: readonly string[], answers: () => Answers): string | undefined {
  const [first = "help", second, ...more] = words;
  if (more.length > 0) return undefined;
  const asksHelp = first === "help" || ASKS_HELP.test(first);
  if (second === undefined) {
    if (first === "--version" || first === "-V") return answers().version;
    return asksHelp ? answers().help : undefined;
  }
  const verb = asksHelp ? second : ASKS_HELP.test(second) ? first : undefined;
  if (verb === undefined) return undefined;
  const { verbs } = answers();
  return Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
}
