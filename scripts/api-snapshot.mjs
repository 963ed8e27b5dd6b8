// @ts-check
/**
 * The public API as one text: the declaration files that a user's compiler can reach from the entry points.
 *
 * It is committed beside the tidy tests, so that a change of the public surface is seen in a diff.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

import { root } from "./setup.mjs";

const HOME = join(root, "packages/holdfast");
const DIST = join(HOME, "dist");
/** What our own verification stands on; it may change without notice. */
const NOT_FOR_USERS = "./simulation";
const SNAPSHOT = join(root, "tests/tidy/api-snapshot.d.ts.txt");

/** @returns {string} the API of the last build */
export function builtApi() {
  const { exports: all } = JSON.parse(readFileSync(join(HOME, "package.json"), "utf8"));
  const entries = Object.entries(all)
    .filter(([name]) => name !== NOT_FOR_USERS)
    .flatMap(([, { types }]) => (types === undefined ? [] : [join(HOME, types)]))
    .filter((file) => existsSync(file));
  return flatten(entries, (file) => readFileSync(file, "utf8"), DIST);
}

/** @returns {string} the API that was last accepted; empty when there is none */
export function acceptedApi() {
  return existsSync(SNAPSHOT) ? readFileSync(SNAPSHOT, "utf8") : "";
}

/**
 * Accepts the API of the last build.
 *
 * @returns {boolean} whether that changed anything
 */
export function writeSnapshot() {
  const api = builtApi();
  if (api === acceptedApi()) return false;
  writeFileSync(SNAPSHOT, api);
  return true;
}

/**
 * Declarations without comments, one file after the other, in the order of their paths.
 *
 * @param {readonly string[]} entries
 * @param {(file: string) => string} read
 * @param {string} base
 * @returns {string}
 */
export function flatten(entries, read, base) {
  /** @type {Map<string, string>} */
  const reached = new Map();
  const open = [...entries];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (reached.has(file)) continue;
    const text = read(file).replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
    reached.set(file, text.replace(/\n\s*\n+/g, "\n").trim());
    for (const [, specifier = ""] of text.matchAll(/(?:from|import\()\s*"(\.[^"]+)\.js"/g))
      open.push(join(dirname(file), `${specifier}.d.ts`));
  }
  return [...reached]
    .map(([file, text]) => `// ${relative(base, file).replaceAll("\\", "/")}\n${text}\n`)
    .sort()
    .join("\n");
}
