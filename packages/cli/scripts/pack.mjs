// @ts-check
/**
 * Builds the published package: a few bundled files instead of three hundred.
 *
 *     node packages/cli/scripts/pack.mjs [folder]
 *
 * `run` must start fast for cron jobs, and for Node opening a file takes longer than reading it. The command is
 * therefore bundled with the library and the client library, and the package includes the license of the latter. Each
 * verb stays a separate file that is imported when the verb is called. Modules that other programs import keep their
 * imports, because they must share the objects of the installed library. In the repository the compiled files stay
 * unchanged.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

import { inShortLines } from "./short-lines.mjs";

const home = fileURLToPath(new URL("..", import.meta.url));
/** The modules that `holdfast run` imports before it starts the child. */
const ON_THE_WAY = ["frame/connect.js", "verbs/run/run.js"];
/** Functions and classes keep their names, so that stack traces stay readable. */
const SMALL = { minify: true, keepNames: true };

/**
 * Writes the package to `target`, from the compiled files.
 *
 * @param {string} target
 * @returns {Promise<void>}
 * @throws Error  the console pages were not built
 */
export async function pack(target) {
  const pages = join(home, "../console/dist/ui");
  if (!existsSync(join(pages, "index.html"))) throw new Error(`${pages} has no pages: npm run build writes them`);
  const manifest = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  // Files that are not code: the manual page and the completions.
  const isCode = (/** @type {string} */ path) => /\.(?:js|d\.ts|map|tsbuildinfo)$/.test(path);
  for (const folder of manifest.files) {
    if (existsSync(join(home, folder)))
      cpSync(join(home, folder), join(target, folder), { recursive: true, filter: (path) => !isCode(path) });
  }
  await bundleCommand(join(home, manifest.bin.holdfast), target);
  await writeAnswers(manifest, target);
  cpSync(pages, join(target, "dist/console/ui"), { recursive: true });
  const clients = createRequire(join(home, "package.json")).resolve("ioredis/package.json");
  cpSync(join(dirname(clients), "LICENSE"), join(target, "dist/LICENSE.ioredis"));
  // All other dependencies of the command are in its bundle.
  const { "@holdfast/embedded": embedded, holdfast } = manifest.dependencies;
  const dependencies = { "@holdfast/embedded": embedded, holdfast };
  const { devDependencies: _, ...published } = { ...manifest, bin: { holdfast: "dist/main.cjs" }, dependencies };
  writeFileSync(join(target, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
}

/**
 * Bundles the command as CommonJS, which Node loads faster. It writes the entry (main.cjs), the code that `run` needs
 * (command.cjs), and separate files with the code that only other verbs need.
 *
 * @param {string} main
 * @param {string} target
 */
async function bundleCommand(main, target) {
  const external = externals(["@holdfast/embedded"]);
  const format = {
    format: /** @type {const} */ ("cjs"),
    dir: join(target, "dist"),
    entryFileNames: "[name].cjs",
    ...SMALL,
  };
  const entry = await rolldown({ input: { main: join(dirname(main), "start/entry.js") }, platform: "node" });
  await entry.write({ ...format, chunkFileNames: "main-[name].cjs" });
  await entry.close();
  const command = await rolldown({
    input: { command: main },
    external,
    platform: "node",
    plugins: [parsedJson, quickClient],
  });
  const ofRun = await neededBy(command, [main, ...ON_THE_WAY.map((file) => join(dirname(main), file))]);
  const group = { name: "command", test: (/** @type {string} */ id) => ofRun.has(id) };
  await command.write({ ...format, chunkFileNames: "command-[name]-[hash].cjs", codeSplitting: { groups: [group] } });
  await command.close();
  for (const file of readdirSync(format.dir).filter((name) => name.endsWith(".cjs"))) {
    const path = join(format.dir, file);
    writeFileSync(path, inShortLines(inAscii(readFileSync(path, "utf8"))));
  }
}

/**
 * Escapes non-ASCII characters. A single character beyond Latin-1 makes V8 store the whole source with two bytes per
 * character.
 *
 * @param {string} code
 * @returns {string}
 */
function inAscii(code) {
  const escaped = (/** @type {string} */ unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return code.replace(/[^\0-\x7f]/g, escaped);
}

/** V8 parses a large table faster as JSON than as code. The client library contains one of 60 kB. */
const parsedJson = {
  name: "parsed-json",
  /** @type {(code: string, id: string) => { code: string, moduleType: "js" } | undefined} */
  transform(code, id) {
    if (!id.endsWith(".json")) return undefined;
    const text = JSON.stringify(JSON.stringify(JSON.parse(code)));
    return { code: `module.exports = JSON.parse(${text});`, moduleType: "js" };
  },
};

/**
 * Work that the client library does at each start and that `run` does not need. V8 takes 7 ms to add 600 methods to a
 * prototype one by one, but almost no time to create an object with them. The other changes delay Node modules that
 * only TLS, clusters and error handling use.
 *
 * @type {Record<string, readonly (readonly [string, string])[]>}
 */
const QUICKER = {
  "ioredis/built/utils/Commander.js": [
    [
      "commands.forEach(",
      "const builtin = {};\nObject.setPrototypeOf(Commander.prototype, builtin);\ncommands.forEach(",
    ],
    ["Commander.prototype[commandName] =", "builtin[commandName] ="],
    ['Commander.prototype[commandName + "Buffer"] =', 'builtin[commandName + "Buffer"] ='],
  ],
  "ioredis/built/connectors/StandaloneConnector.js": [laterOf("tls_1", "tls", ["connect"])],
  "ioredis/built/connectors/SentinelConnector/index.js": [laterOf("tls_1", "tls", ["connect"])],
  "ioredis/built/cluster/ClusterOptions.js": [laterOf("dns_1", "dns", ["resolveSrv", "lookup"])],
  "ioredis/built/utils/debug.js": [
    ['const debug_1 = require("debug");', "const debug_1 = { default: () => ({ enabled: false }) };"],
  ],
  "redis-errors/lib/modern.js": [
    [
      "const assert = require('assert')",
      "const assert = Object.assign((value) => require('assert')(value), { strictEqual: (a, b) => require('assert').strictEqual(a, b) })",
    ],
  ],
};

/**
 * Replaces an import of a Node module, so that the module is loaded when one of these functions is called.
 *
 * @param {string} variable
 * @param {string} module
 * @param {readonly string[]} names
 * @returns {readonly [string, string]}
 */
function laterOf(variable, module, names) {
  const members = names.map((name) => `${name}: (...args) => require("${module}").${name}(...args)`);
  return [`const ${variable} = require("${module}");`, `const ${variable} = { ${members.join(", ")} };`];
}

/** @throws Error  this release of the client library does not contain the expected text */
const quickClient = {
  name: "quick-client",
  /** @type {(code: string, id: string) => string | undefined} */
  transform(code, id) {
    const [file, changes] = Object.entries(QUICKER).find(([end]) => id.replaceAll("\\", "/").endsWith(`/${end}`)) ?? [];
    if (changes === undefined) return undefined;
    return changes.reduce((text, [before, after]) => {
      if (text.split(before).length !== 2) throw new Error(`${file} has not once: ${before}`);
      return text.replace(before, () => after);
    }, code);
  },
};

/**
 * Returns these modules and everything they import statically.
 *
 * @param {import("rolldown").RolldownBuild} build
 * @param {readonly string[]} modules
 * @returns {Promise<ReadonlySet<string>>}
 */
async function neededBy(build, modules) {
  const { output } = await build.generate({ format: "esm" });
  const chunks = output.filter((file) => file.type === "chunk");
  const needed = new Set(chunks.filter(({ moduleIds }) => moduleIds.some((id) => modules.includes(id))));
  for (const { imports } of needed) for (const chunk of chunks) if (imports.includes(chunk.fileName)) needed.add(chunk);
  return new Set([...needed].flatMap(({ moduleIds }) => moduleIds));
}

/**
 * Writes the texts that are printed without loading the command: see src/start/answers.ts.
 *
 * @param {{ version: string }} manifest
 * @param {string} target
 */
async function writeAnswers({ version }, target) {
  const { generalHelp, verbHelp } = await import("../dist/frame/help.js");
  const { VERBS, loadVerb } = await import("../dist/frame/verbs-table.js");
  const verbs = await Promise.all(Object.keys(VERBS).map(async (name) => [name, await verbHelp(await loadVerb(name))]));
  const answers = { version: `holdfast ${version}\n`, help: generalHelp(), verbs: Object.fromEntries(verbs) };
  writeFileSync(join(target, "dist/answers.json"), JSON.stringify(answers));
}

/** @param {readonly string[]} names */
function externals(names) {
  return (/** @type {string} */ id) =>
    id.startsWith("node:") || names.some((name) => id === name || id.startsWith(`${name}/`));
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  await pack(argv[2] ?? join(home, "packs"));
}
