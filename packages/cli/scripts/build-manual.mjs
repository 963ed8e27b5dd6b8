// @ts-check
/**
 * Writes the manual page and the completions from the compiled table of verbs.
 *
 *     node packages/cli/scripts/build-manual.mjs [--check]
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv, exit } from "node:process";
import { fileURLToPath } from "node:url";

import { bashCompletion, fishCompletion, zshCompletion } from "./completions.mjs";
import { flagsOf } from "./flags.mjs";
import { manPage } from "./man-page.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/**
 * @typedef {{ readonly name: string, readonly usage: string, readonly help: string | (() => Promise<string>), readonly takesCommand?: boolean,
 *   readonly options: Readonly<Record<string, import("./flags.mjs").OptionSpec>> }} Verb
 * @typedef {{ VERBS: Readonly<Record<string, { readonly summary: string, readonly load?: () => Promise<Verb> }>>,
 *   COMMON_OPTIONS: Verb["options"], COMMON_HELP: string, general: string, version: string }} Table
 */

/**
 * Generates the files. Returns the path of each, relative to the package, and its content.
 *
 * @param {Table} table
 * @returns {Promise<readonly (readonly [path: string, text: string])[]>}
 */
export async function manualFiles({ VERBS, COMMON_OPTIONS, COMMON_HELP, general, version }) {
  const verbs = [];
  for (const [name, { summary, load }] of Object.entries(VERBS)) {
    if (load === undefined) continue;
    const { usage, help: said, options, takesCommand = false } = await load();
    const help = typeof said === "string" ? said : await said();
    const takesName = new RegExp(`^holdfast ${name} \\[?(NAME|PATTERN)\\b`).test(usage);
    const choices = new RegExp(`^holdfast ${name} (\\w+(?:\\|\\w+)+)$`).exec(usage)?.[1]?.split("|") ?? [];
    verbs.push({ name, summary, usage, help, choices, takesName, takesCommand, flags: flagsOf(options, help) });
  }
  const common = flagsOf(COMMON_OPTIONS, COMMON_HELP);
  return [
    ["completions/holdfast.bash", bashCompletion(verbs, common)],
    ["completions/_holdfast", zshCompletion(verbs, common)],
    ["completions/holdfast.fish", fishCompletion(verbs, common)],
    ["man/holdfast.1", manPage({ version, general, verbs, common: COMMON_HELP })],
  ];
}

/** Loads the compiled table. @returns {Promise<Table>} */
async function compiledTable() {
  /** @param {string} module */
  const compiled = (module) => import(new URL(`../dist/frame/${module}.js`, import.meta.url).href);
  const [{ VERBS }, flags, help] = await Promise.all([compiled("verbs-table"), compiled("flags"), compiled("help")]);
  return {
    VERBS,
    COMMON_OPTIONS: flags.COMMON_OPTIONS,
    COMMON_HELP: flags.COMMON_HELP,
    general: help.generalHelp(),
    version: JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")).version,
  };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  let stale = 0;
  for (const [path, text] of await manualFiles(await compiledTable())) {
    const file = join(PACKAGE, path);
    if (existsSync(file) && readFileSync(file, "utf8") === text) continue;
    stale += 1;
    if (argv.includes("--check")) console.log(`${path} is stale; repair it with: npm run fix`);
    else {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
      console.log(`wrote packages/cli/${path}`);
    }
  }
  exit(argv.includes("--check") && stale > 0 ? 1 : 0);
}
