// @ts-check
/**
 * Builds the published package: a few bundled files instead of three hundred.
 *
 *     node packages/cli/scripts/pack.mjs [folder]
 *
 * `run` must start fast for cron jobs, and Node takes longer to open a file than to read it. The command is therefore
 * bundled with the library and the client library, and the package includes the license of the latter. Each verb stays
 * a separate file that is imported when the verb is called. Modules that other programs import keep their imports,
 * because they must share the objects of the installed library. In the repository the compiled files stay unchanged.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

import { inShortLines } from "./short-lines.mjs";

const home = fileURLToPath(new URL("..", import.meta.url));
/** The modules that every `holdfast run` imports. */
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
  const isExternal = externals(["@holdfast/embedded"]);
  const external = (/** @type {string} */ id) => isExternal(id) && id !== "node:process";
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
    // `onlyHistory` imports one module of an entry that other verbs import whole.
    checks: { ineffectiveDynamicImport: false },
    plugins: [globalProcess, parsedJson, quickClient, onlyHistory],
  });
  const onTheWay = ON_THE_WAY.map((file) => join(dirname(main), file));
  const ofRun = await neededBy(command, [main, HISTORY, ...onTheWay]);
  const group = { name: "command", test: (/** @type {string} */ id) => ofRun.has(id) };
  await command.write({ ...format, chunkFileNames: "command-[name]-[hash].cjs", codeSplitting: { groups: [group] } });
  await command.close();
  for (const file of readdirSync(format.dir).filter((name) => name.endsWith(".cjs"))) {
    const path = join(format.dir, file);
    const code = readFileSync(path, "utf8");
    writeFileSync(path, inShortLines(inAscii(file === "command.cjs" ? withHelpers(code, format.dir) : code)));
  }
}

/**
 * Puts the bundler's helpers into the file, because Node takes longer to open a file than to read it.
 *
 * @param {string} code
 * @param {string} folder
 * @returns {string}
 * @throws Error  the file does not import the helpers as expected
 */
function withHelpers(code, folder) {
  const imported = /const (\w+)=require\("\.\/(command-rolldown-runtime-[\w-]+\.cjs)"\)/.exec(code);
  const [statement, variable, file] = imported ?? [];
  if (statement === undefined || file === undefined)
    throw new Error("command.cjs does not import the bundler's helpers");
  const helpers = readFileSync(join(folder, file), "utf8");
  return code.replace(statement, () => `const ${variable}=(exports=>{${helpers}\nreturn exports})({})`);
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

/**
 * V8 parses a large table faster as JSON than as code. The client library contains a table of 50 kB about all commands.
 * A start needs only their names, and which of them a server accepts while it loads its data. The rest is parsed when
 * it is used.
 */
const parsedJson = {
  name: "parsed-json",
  /** @type {(code: string, id: string) => { code: string, moduleType: "js" } | undefined} */
  transform(code, id) {
    if (!id.endsWith(".json")) return undefined;
    const table = JSON.parse(code, (key, value) => {
      // The client library uses no other flags, and does not use the number of arguments.
      if (key === "flags") return value.filter((/** @type {string} */ flag) => /^(?:loading|readonly)$/.test(flag));
      return key === "arity" ? undefined : value;
    });
    const parsed = `JSON.parse(${JSON.stringify(JSON.stringify(table))})`;
    if (!id.replaceAll("\\", "/").endsWith("/@ioredis/commands/built/commands.json"))
      return { code: `module.exports = ${parsed};`, moduleType: "js" };
    const setOf = (/** @type {string[]} */ names) => `new Set(${JSON.stringify(names.join(" "))}.split(" "))`;
    const names = Object.keys(table);
    const loading = names.filter((name) => table[name].flags.includes("loading"));
    return {
      code: `let table;
module.exports = { names: ${setOf(names)}, loading: ${setOf(loading)}, table: () => (table ??= ${parsed}) };`,
      moduleType: "js",
    };
  },
};

/**
 * Removes work that the client library does at each start and that `run` does not need. V8 takes 7 ms to add 600
 * methods to a prototype one by one, but almost no time to create an object with them. The other changes delay Node
 * modules that only TLS, clusters and error handling use, and its own files that one server without TLS does not need.
 *
 * @type {Record<string, readonly (readonly [string, string])[]>}
 */
const QUICKER = {
  "@ioredis/commands/built/index.js": [
    ["const commandMetadata = commands_json_1.default;", "const { names, loading, table } = commands_json_1.default;"],
    ["exports.list = Object.keys(commandMetadata);", "exports.list = [...names];"],
    [
      `const flags = {};
exports.list.forEach((commandName) => {
    flags[commandName] = commandMetadata[commandName].flags.reduce(function (flags, flag) {
        flags[flag] = true;
        return flags;
    }, {});
});`,
      "",
    ],
    ["return Boolean(commandMetadata[commandName]);", "return names.has(commandName);"],
    ["if (!flags[commandName]) {", "if (!names.has(commandName)) {"],
    [
      "return Boolean(flags[commandName][flag]);",
      'return flag === "loading" ? loading.has(commandName) : table()[commandName].flags.includes(flag);',
    ],
    ["const command = commandMetadata[commandName];", "const command = table()[commandName];"],
  ],
  "ioredis/built/utils/Commander.js": [
    [
      "commands.forEach(",
      "const builtin = {};\nObject.setPrototypeOf(Commander.prototype, builtin);\ncommands.forEach(",
    ],
    ["Commander.prototype[commandName] =", "builtin[commandName] ="],
    ['Commander.prototype[commandName + "Buffer"] =', 'builtin[commandName + "Buffer"] ='],
  ],
  "ioredis/built/index.js": [
    laterFile("var", "cluster_1", "./cluster", ["default"]),
    laterFile("var", "ScanStream_1", "./ScanStream", ["default"]),
    laterFile("var", "Pipeline_1", "./Pipeline", ["default"]),
    laterFile("var", "SentinelConnector_1", "./connectors/SentinelConnector", ["default", "SentinelIterator"]),
  ],
  "ioredis/built/Redis.js": [
    laterFile("const", "cluster_1", "./cluster", ["default"]),
    [
      "Redis.Cluster = cluster_1.default;",
      'Object.defineProperty(Redis, "Cluster", { configurable: true, get: () => cluster_1.default });',
    ],
    laterFile("const", "ScanStream_1", "./ScanStream", ["default"]),
    laterFile("const", "SentinelConnector_1", "./connectors/SentinelConnector", ["default"]),
  ],
  "ioredis/built/connectors/index.js": [
    laterFile("const", "SentinelConnector_1", "./SentinelConnector", ["default"]),
    [
      "exports.SentinelConnector = SentinelConnector_1.default;",
      'Object.defineProperty(exports, "SentinelConnector", { get: () => SentinelConnector_1.default });',
    ],
  ],
  "ioredis/built/transaction.js": [laterFile("const", "Pipeline_1", "./Pipeline", ["default"])],
  "ioredis/built/utils/index.js": [laterFile("const", "TLSProfiles_1", "../constants/TLSProfiles", ["default"])],
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

/**
 * Replaces an import of a file of the client library, so that the file is evaluated when one of its exports is read.
 *
 * @param {"const" | "var"} keyword
 * @param {string} variable
 * @param {string} file
 * @param {readonly string[]} names
 * @returns {readonly [string, string]}
 */
function laterFile(keyword, variable, file, names) {
  const members = names.map((name) => `get ${name}() { return require("${file}").${name}; }`);
  const after = `${keyword} ${variable} = { ${members.join(", ")} };`;
  return [`${keyword} ${variable} = require("${file}");`, after];
}

/** @throws Error  this release of the client library does not contain the expected text */
const quickClient = {
  name: "quick-client",
  /** @type {(code: string, id: string) => string | undefined} */
  transform(code, id) {
    const [file, changes] = Object.entries(QUICKER).find(([end]) => id.replaceAll("\\", "/").endsWith(`/${end}`)) ?? [];
    if (changes === undefined) return undefined;
    return changes.reduce((text, [before, after]) => {
      if (text.split(before).length !== 2) throw new Error(`${file} must contain exactly once: ${before}`);
      return text.replace(before, () => after);
    }, code);
  },
};

/**
 * Uses the global `process` instead of `node:process`. When Node loads that module, it reads all its properties, which
 * opens the standard streams.
 */
const globalProcess = {
  name: "global-process",
  /** @type {(source: string) => string | undefined} */
  resolveId: (source) => (source === "node:process" ? "\0process" : undefined),
  /** @type {(id: string) => string | undefined} */
  load: (id) => (id === "\0process" ? "module.exports = process;" : undefined),
};

/** The only module of `holdfast/admin` that `run` uses. */
const HISTORY = join(dirname(createRequire(import.meta.url).resolve("holdfast/admin")), "history.js");

/** Makes `run` load the module that writes its history, and not all of `holdfast/admin`. */
const onlyHistory = {
  name: "only-history",
  /** @type {(source: string, importer: string | undefined) => string | undefined} */
  resolveId(source, importer) {
    const isOfRun = importer?.replaceAll("\\", "/").endsWith("/verbs/run/chronicle.js") === true;
    return isOfRun && source === "holdfast/admin" ? HISTORY : undefined;
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
