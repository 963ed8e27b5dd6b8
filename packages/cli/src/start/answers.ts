/**
 * What is answered from texts that were written when the package was made: help and the version. frame/dispatch.ts says the
 * same; who asks for it here has not waited for the command to be loaded.
 */

/** What scripts/pack.mjs writes beside the command. */
export interface Answers {
  readonly version: string;
  readonly help: string;
  /** By verb. */
  readonly verbs: Readonly<Record<string, string>>;
}

const ASKS_HELP = /^(?:--help|-h)$/;

/**
 * The answer, if the words ask for nothing else; undefined for whatever the command has to look at itself.
 *
 * @param words    without the program's own name
 * @param answers  called only if they may have it
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
