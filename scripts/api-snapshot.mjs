// @ts-check
/**
 * The public API in one file: the declaration files that a user's compiler can reach from the entry points.
 *
 * It is committed next to the tidy tests, so that a change of the public API is visible in a diff.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

import { writeDeclarations } from "./declarations.mjs";
import { root } from "./setup.mjs";

/** The entry point for Holdfast's other packages and its verification. It may change in any version. */
const NOT_FOR_USERS = new Set(["./internal", "./simulation"]);
const SNAPSHOT = join(root, "tests/tidy/api-snapshot.d.ts.txt");

/** @returns {string} the API of all libraries as currently compiled */
export function builtApi() {
  const base = mkdtempSync(join(tmpdir(), "holdfast-api-"));
  try {
    const texts = readdirSync(join(root, "packages")).map((folder) => {
      const home = join(root, "packages", folder);
      const { bin, exports: all } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
      if (bin !== undefined) return "";
      writeDeclarations(home, join(base, folder));
      const entries = Object.entries(all)
        .filter(([name]) => !NOT_FOR_USERS.has(name))
        .flatMap(([, { types }]) => (types === undefined ? [] : [join(base, folder, types.replace("./dist/", ""))]));
      return flatten(entries, (file) => readFileSync(file, "utf8"), base);
    });
    return texts.filter((text) => text !== "").join("\n");
  } finally {
    rmSync(base, { recursive: true });
  }
}

/** @returns {string} the API that was last accepted; empty if there is none */
export function acceptedApi() {
  return existsSync(SNAPSHOT) ? readFileSync(SNAPSHOT, "utf8") : "";
}

/**
 * Accepts the API of the last build.
 *
 * @returns {boolean} whether it has changed
 */
export function writeSnapshot() {
  const api = builtApi();
  if (api === acceptedApi()) return false;
  writeFileSync(SNAPSHOT, api);
  return true;
}

/**
 * The declarations without comments, file by file in the order of their paths.
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
  // The internal entry point lists names from the whole library. Only the files whose names are used belong to the API.
  /** @type {(file: string, names?: string) => string[]} */
  const filesOf = (file, names = "") => {
    if (relative(base, file).replaceAll("\\", "/") !== "holdfast/internal.d.ts") return [file];
    const wanted = names.split(",").map(
      (name) =>
        name
          .trim()
          .replace(/^type /, "")
          .split(" as ")[0],
    );
    return [...read(file).matchAll(/\{([^}]*)\}\s*from\s*"(\.[^"]+)\.js"/g)]
      .filter(([, exported = ""]) => wanted.some((name) => new RegExp(`\\b${name}\\b`).test(exported)))
      .map(([, , specifier = ""]) => join(dirname(file), `${specifier}.d.ts`));
  };
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (reached.has(file)) continue;
    const text = read(file).replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
    reached.set(file, text.replace(/\n\s*\n+/g, "\n").trim());
    for (const [, names, specifier = ""] of text.matchAll(/(?:\{([^}]*)\}\s*from|from|import\()\s*"(\.[^"]+)\.js"/g))
      open.push(...filesOf(join(dirname(file), `${specifier}.d.ts`), names));
  }
  return [...reached]
    .map(([file, text]) => `// ${relative(base, file).replaceAll("\\", "/")}\n${text}\n`)
    .sort()
    .join("\n");
}
