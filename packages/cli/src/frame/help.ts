/** The texts of `holdfast help`. */
import { COMMON_HELP } from "./flags.js";
import type { Verb } from "./verb.js";
import { VERBS } from "./verbs-table.js";

/** The list of verbs, the exit codes and the common flags. */
export function generalHelp(): string {
  const verbs = Object.entries(VERBS)
    .filter(([, { load }]) => load !== undefined)
    .map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`);
  return `holdfast: distributed locks on Redis and Valkey, from the command line

  holdfast run NAME [flags] -- command [args]

${verbs.join("\n")}
  help VERB  print the flags of a verb; --version: print the version

${COMMON_HELP}

Exit codes:
  command's    the command ran under the lock from start to end (run, elect)
  0            done
  1            the result is negative: not held, no leader, not changed,
               or problems found
  64           wrong usage
  65           NAME is in use as another kind, or with other permits, or a
               key of it has a wrong type
  69           Redis cannot be reached or the outcome is unknown, never busy
  75           the command did not run: busy, wait over, paused, already
               done, quiet time after a failover or restart
  77           Redis refuses the user: authentication or ACL
  123          the lock was lost while the command ran; replaces the code of
               the command
  124          ended by --max-hold
  125          internal error of holdfast
  126 / 127    the command cannot be executed / was not found
  128+n        ended by signal n
`;
}

/** Usage, flags and common flags of one verb. */
export async function verbHelp(verb: Verb): Promise<string> {
  return `usage: ${verb.usage.replaceAll("\n", "\n       ")}\n\n${(await helpOf(verb)).trim()}\n\n${COMMON_HELP}\n`;
}

/** The verb's own description of its flags. */
export async function helpOf({ help }: Verb): Promise<string> {
  return typeof help === "string" ? help : await help();
}
