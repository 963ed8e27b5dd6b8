// @ts-check
/**
 * What is published: the command with a few bundled files in place of three hundred.
 *
 *     node packages/cli/scripts/pack.mjs [folder]
 *
 * `run` is on the start-up path of cron jobs, and opening a file costs Node more than reading it. The command is bundled with
 * the library and the client library, whose license goes along; each verb stays a file of its own, imported when it is
 * called. What other programs import keeps its imports, since an object of the library has to be of their library. In the
 * repository the compiled files stay as they are.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

import { inShortLines } from "./short-lines.mjs";

const home = fileURLToPath(new URL("..", import.meta.url));
/** What `holdfast run` imports on its way to the child. */
const ON_THE_WAY = ["frame/connect.js", "verbs/run/run.js"];
/** Functions and classes keep their names, so that an error's stack can be read. */
const SMALL = { minify: true, keepNames: true };

/**
 * Writes the package to `target`, from the compiled files.
 *
 * @param {string} target
 * @returns {Promise<void>}
 * @throws Error  the pages of the console were not built
 */
export async function pack(target) {
  const pages = join(home, "../console/dist/ui");
  if (!existsSync(join(pages, "index.html"))) throw new Error(`${pages} has no pages: npm run build writes them`);
  const manifest = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  // What is there beside code: the man page and the completions.
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
  // All else that the command uses is in its bundle.
  const { "@holdfast/embedded": embedded, holdfast } = manifest.dependencies;
  const dependencies = { "@holdfast/embedded": embedded, holdfast };
  const { devDependencies: _, ...published } = { ...manifest, bin: { holdfast: "dist/main.cjs" }, dependencies };
  writeFileSync(join(target, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
}

/**
 * The command as CommonJS, which Node loads with less ado: what it begins with (main.cjs), what `run` needs in one file
 * (command.cjs), and what other verbs need besides in files of their own.
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
 * With one character beyond Latin-1, V8 keeps two bytes for each.
 *
 * @param {string} code
 * @returns {string}
 */
function inAscii(code) {
  const escaped = (/** @type {string} */ unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return code.replace(/[^\0-\x7f]/g, escaped);
}

/** V8 reads a table sooner as JSON than as code; the client library has one of 60 kB. */
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
 * What the client library does at each start and `run` does not need. V8 takes 7 ms to add 600 methods to a prototype one after
 * another, and next to nothing for an object; the rest loads modules of Node that only TLS, clusters and faults use.
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
 * An import of a module of Node that is loaded when one of these functions is called.
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

/** @throws Error  a release of the client library has another text */
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
 * These modules and all that they import, but for what they import later.
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
 * What is printed without loading anything: src/start/answers.ts.
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
