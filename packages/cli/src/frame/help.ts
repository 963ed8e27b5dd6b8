/** What `holdfast help` prints. */
import { usageError } from "./exit-codes.js";
import { COMMON_HELP } from "./flags.js";
import type { Verb } from "./verb.js";
import { VERBS } from "./verbs-table.js";

/** The verbs, the exit codes and the common flags. */
export function generalHelp(): string {
  const verbs = Object.entries(VERBS)
    .filter(([, { load }]) => load !== undefined)
    .map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`);
  return `holdfast: distributed locks on Redis and Valkey, from the command line

  holdfast run NAME [flags] -- command [args]

${verbs.join("\n")}
  help VERB  the flags of a verb; --version

${COMMON_HELP}

Exit codes:
  child's own  the command ran under the lock from start to end (run, elect)
  0 / 1        done / the answer is no
  64           usage
  65           the name is in use as another kind or with another number of permits
  69           Redis cannot be reached, or the outcome is unknown; never "busy"
  75           the command did not run: busy, wait over, paused, already done, failover grace
  77           refused by Redis: authentication or ACL
  123          the lock was lost while the command ran, whatever the command's own code
  124          ended by --max-hold
  125          a failure of holdfast itself
  126 / 127    the command cannot be executed / was not found
  128+n        ended by signal n
`;
}

/** Usage, flags and common flags of one verb. */
export function verbHelp({ usage, help }: Verb): string {
  return `usage: ${usage.replaceAll("\n", "\n       ")}\n\n${help.trim()}\n\n${COMMON_HELP}\n`;
}

/** Imports a verb. @throws CliError 64  there is none of that name */
export async function loadVerb(name: string): Promise<Verb> {
  const load = Object.hasOwn(VERBS, name) ? VERBS[name]?.load : undefined;
  if (load === undefined) throw usageError(`there is no verb "${name}"; holdfast help lists them`);
  return await load();
}
