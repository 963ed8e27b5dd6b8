// @ts-check
/**
 * npm run test:install [-- TEXT]: installs the packed packages into new projects, as a user does, and acquires a lock there.
 *
 * Each project has one package manager and one neighbor: a package in a version that Holdfast does not integrate with, which
 * must not prevent the installation of Holdfast. In each project, a first program runs as an ES module and as CommonJS, and
 * is compiled by TypeScript with each setting that the README names. With npm and no neighbor, it is also bundled. TEXT runs
 * only the projects whose name contains it.
 *
 * The package managers come from npm's configured registry. The last line is `N passed, N failed`.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, execPath, exit } from "node:process";

import { build, dependencies, redisServer, root } from "./setup.mjs";

/** Timeout of one step of a project. */
const STEP_MS = 180_000;

const NPM = { name: "npm", install: ["npm", "install", "--no-audit", "--no-fund"] };
/** Package managers differ in how they resolve peers, and in the layout of node_modules. */
const MANAGERS = [
  NPM,
  { name: "pnpm", install: ["npx", "-y", "pnpm@10.34.8", "install", "--no-frozen-lockfile"] },
  // yarn identifies a tarball by name and version, so it would take that of an earlier run from its default cache.
  {
    name: "yarn",
    install: ["npx", "-y", "yarn@1.22.22", "install", "--no-lockfile", "--cache-folder", "../yarn-cache"],
  },
  { name: "bun", install: ["npx", "-y", "bun@1.4.5", "install"] },
];

/** The packages that each project installs. `http` depends on `recipes`; all need the same version of `holdfast`. */
const PACKAGES = ["holdfast", "recipes", "interop", "telemetry", "http", "redlock-compat"];

/** Packages in versions that Holdfast has no integration for. @type {Record<string, Record<string, string>>} */
const NEIGHBORS = {
  none: {},
  "node-cron 3": { "node-cron": "3.0.3" },
  "fastify 4": { fastify: "4.29.1" },
  "prom-client 14": { "prom-client": "14.2.0" },
  "ioredis 4": { ioredis: "4.30.1" },
  "nest 9": {
    "@nestjs/common": "9.4.3",
    "@nestjs/core": "9.4.3",
    "reflect-metadata": "0.1.14",
    rxjs: "7.8.2",
  },
};

const TYPESCRIPT = { "ts 5.4": "5.4.5", "ts 5.9": "5.9.3", "ts 7.0": "7.0.2" };
/** Settings of TypeScript, and the kind of module that a file is with them. @type {Record<string, { extension: string, since?: string, before?: string, options: object }>} */
const SETTINGS = {
  "nodenext, ES module": { extension: "mts", options: { module: "nodenext" } },
  "nodenext, CommonJS": { extension: "cts", since: "5.8", options: { module: "nodenext" } },
  bundler: { extension: "ts", options: { module: "esnext", moduleResolution: "bundler" } },
  // TypeScript 7 has removed it.
  node10: {
    extension: "ts",
    before: "7",
    options: { module: "commonjs", moduleResolution: "node10", esModuleInterop: true },
  },
};

/**
 * Bundlers, each with the command that writes out/first.cjs, minified.
 * @type {Record<string, { packages: Record<string, string>, command: readonly string[] }>}
 */
const BUNDLERS = {
  esbuild: {
    packages: { esbuild: "0.28.2" },
    command: ["esbuild", "first.mjs", "--bundle", "--minify", "--platform=node", "--outfile=out/first.cjs"],
  },
  rollup: {
    packages: {
      rollup: "4.68.8",
      "@rollup/plugin-commonjs": "29.0.3",
      "@rollup/plugin-json": "6.1.0",
      "@rollup/plugin-node-resolve": "16.0.3",
      "@rollup/plugin-terser": "1.0.2",
    },
    command: [
      "rollup",
      ...["first.mjs", "--file", "out/first.cjs", "--format", "cjs", "--inlineDynamicImports", "--silent"],
      ...["-p", "node-resolve={exportConditions:['node']}", "-p", "commonjs", "-p", "json", "-p", "terser"],
    ],
  },
  webpack: {
    packages: { webpack: "5.113.0", "webpack-cli": "6.0.1" },
    command: [
      "webpack",
      ...["./first.mjs", "--mode", "production", "--target", "node", "-o", "out", "--output-filename", "first.cjs"],
    ],
  },
};

const BODY = `
async function main() {
  const redis = new Redis(Number(process.env.REDIS_PORT));
  const holdfast = createHoldfast({ redis });
  const mutex = holdfast.mutex("first");
  const token = await mutex.run((lease) => lease.token);
  const taken = await mutex.acquire();
  const refused = await mutex.tryAcquire();
  await taken.release();
  const answer = await once(holdfast, "answer", async () => 7);
  const redlock = new Redlock([redis]);
  const drop = await redlock.acquire(["drop-in"], 5_000);
  await drop.release();
  await holdfast.close();
  redis.disconnect();
  console.log(token > 0 && refused === null && answer.value === 7 && drop.attempts.length === 1 ? "locked" : "not locked");
}
main();
`;
const AS_MODULE = `import { once } from "@holdfast/recipes";\nimport Redlock from "@holdfast/redlock-compat";\nimport { createHoldfast } from "holdfast";\nimport { Redis } from "ioredis";\n${BODY}`;
const AS_COMMONJS = `const { once } = require("@holdfast/recipes");\nconst { default: Redlock } = require("@holdfast/redlock-compat");\nconst { createHoldfast } = require("holdfast");\nconst Redis = require("ioredis");\n${BODY}`;
const AS_TYPESCRIPT = `
import { redisson } from "@holdfast/interop/redisson";
import { type OnceResult, once } from "@holdfast/recipes";
import Redlock, { type Lock } from "@holdfast/redlock-compat";
import { createHoldfast, type Lease } from "holdfast";
import { clients } from "holdfast/admin";
import { lockManager } from "holdfast/web-locks";
import type { Redis } from "ioredis";
declare const redis: Redis;
const holdfast = createHoldfast({ redis });
export const list: unknown = clients;
export const java: Promise<Lease> = redisson(holdfast).lock("orders").acquire();
export const answer: Promise<OnceResult<number>> = once(holdfast, "answer", async () => 7);
export const drop: Promise<Lock> = new Redlock([redis]).acquire(["first"], 5_000);
export const report: Promise<string> = lockManager(holdfast).request("report", (lock) => lock?.mode ?? "none");
export const taken: Promise<Lease> = holdfast.mutex("first").acquire({ waitMs: 5_000 });
`;

const only = argv[2] ?? "";
/** @type {{ passed: number, failed: string[] }} */
const results = { passed: 0, failed: [] };
const cells = MANAGERS.flatMap((manager) =>
  Object.entries(NEIGHBORS).map(([neighbor, packages]) => ({ manager, neighbor, packages })),
).filter(({ manager, neighbor }) => `${manager.name}, beside ${neighbor}`.includes(only));
if (cells.length === 0) {
  console.error(`No project has "${only}" in its name.`);
  exit(1);
}

await dependencies();
await build();
const work = mkdtempSync(join(tmpdir(), "holdfast-install-"));
const tarballs = Object.fromEntries(
  PACKAGES.map((name) => [name === "holdfast" ? name : `@holdfast/${name}`, `file:${pack(name)}`]),
);
const port = await freePort();
const server = spawn(await redisServer(), ["--port", String(port), "--save", "", "--dir", work], { stdio: "ignore" });
try {
  for (const cell of cells) project(cell);
} finally {
  server.kill();
  rmSync(work, { recursive: true, force: true });
}
for (const failure of results.failed) console.log(`failed: ${failure}`);
console.log(`${results.passed} passed, ${results.failed.length} failed`);
exit(results.failed.length === 0 ? 0 : 1);

/** @param {typeof cells[number]} cell */
function project({ manager, neighbor, packages }) {
  const name = `${manager.name}, beside ${neighbor}`;
  const folder = join(work, name.replace(/\W+/g, "-"));
  mkdirSync(folder);
  const isPlain = neighbor === "none";
  const compilers = isPlain ? TYPESCRIPT : {};
  // The package manager makes no difference to the bundlers.
  const bundlers = isPlain && manager === NPM ? BUNDLERS : {};
  write(folder, "package.json", {
    name: "fresh",
    private: true,
    dependencies: { ...tarballs, ioredis: "5.11.1", ...packages },
    // The packages are not in a registry yet, so they find each other only this way: npm and Bun, pnpm, yarn.
    overrides: tarballs,
    pnpm: { overrides: tarballs },
    resolutions: tarballs,
    devDependencies: Object.fromEntries([
      ["@types/node", "20.19.43"],
      ...Object.entries(compilers).map(([alias, version]) => [alias.replace(/\W/g, ""), `npm:typescript@${version}`]),
      ...Object.values(bundlers).flatMap((bundler) => Object.entries(bundler.packages)),
    ]),
  });
  if (!check(`${name}: install`, () => step(folder, manager.install))) return;
  write(folder, "first.mjs", neighbor === "ioredis 4" ? AS_MODULE.replace("{ Redis }", "Redis") : AS_MODULE);
  write(folder, "first.cjs", AS_COMMONJS);
  const locks = (/** @type {string} */ file) => {
    const printed = step(folder, [execPath, "--no-warnings", file], { REDIS_PORT: String(port) });
    if (printed.trim() !== "locked") throw new Error(`printed ${printed}`);
  };
  for (const file of ["first.mjs", "first.cjs"]) check(`${name}: ${file}`, () => locks(file));
  for (const [bundler, { command }] of Object.entries(bundlers)) {
    check(`${name}: bundled by ${bundler}`, () => {
      rmSync(join(folder, "out"), { recursive: true, force: true });
      const [program = "", ...args] = command;
      step(folder, [join(folder, "node_modules/.bin", program), ...args]);
      locks("out/first.cjs");
    });
  }
  for (const [compiler, version] of Object.entries(compilers)) {
    const release = Number(version.split(".").slice(0, 2).join("."));
    for (const [setting, { extension, since = "0", before = "99", options }] of Object.entries(SETTINGS)) {
      if (release < Number(since) || release >= Number(before)) continue;
      const file = `typed.${extension}`;
      write(folder, file, AS_TYPESCRIPT);
      const compilerOptions = {
        ...options,
        target: "es2022",
        strict: true,
        noEmit: true,
        exactOptionalPropertyTypes: true,
        types: ["node"],
      };
      write(folder, "tsconfig.json", { compilerOptions, files: [file] });
      const tsc = join(folder, "node_modules", compiler.replace(/\W/g, ""), "bin/tsc");
      check(`${name}: ${compiler}, ${setting}`, () => step(folder, [execPath, tsc, "--project", "tsconfig.json"]));
    }
  }
}

/**
 * @param {string} what
 * @param {() => unknown} attempt
 */
function check(what, attempt) {
  try {
    attempt();
    results.passed += 1;
    console.log(`✓ ${what}`);
    return true;
  } catch (error) {
    results.failed.push(`${what}: ${String(error instanceof Error ? error.message : error).slice(0, 600)}`);
    console.log(`✗ ${what}`);
    return false;
  }
}

/**
 * @param {string} folder
 * @param {readonly string[]} command
 * @param {Record<string, string>} [extra]
 * @returns {string} its output
 * @throws Error  it failed; the message has its output
 */
function step(folder, [program = "", ...args], extra = {}) {
  // Variables set by the npm that runs this script must not configure the project's package manager.
  const own = Object.fromEntries(Object.entries(env).filter(([key]) => !/^npm_(?!config_registry)/i.test(key)));
  try {
    const options = { cwd: folder, env: { ...own, ...extra, CI: "1" }, timeout: STEP_MS };
    return execFileSync(program, args, { ...options, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const { stdout = "", stderr = "" } = /** @type {{ stdout?: string, stderr?: string }} */ (error);
    throw new Error(`${stdout}${stderr}`.trim() || String(error));
  }
}

/**
 * Packs a package of this repository with npm.
 *
 * @param {string} name  the name of its folder
 * @returns {string} path of the tarball
 */
function pack(name) {
  const home = join(root, "packages", name);
  const printed = step(home, ["npm", "pack", "--silent", "--pack-destination", work]);
  return join(work, printed.trim().split("\n").at(-1) ?? "");
}

/**
 * @param {string} folder
 * @param {string} file
 * @param {unknown} content
 */
function write(folder, file, content) {
  writeFileSync(join(folder, file), typeof content === "string" ? content : JSON.stringify(content));
}

/** @returns {Promise<number>} a free port */
function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
