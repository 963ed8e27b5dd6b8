// @ts-check
/**
 * npm run test:peers [-- NAME and options of vitest]: runs the tests of the integrations with the older major versions that
 * package.json permits, one file after the other. NAME is part of a set's name, such as `nest-10` or `bullmq`.
 *
 * Each set has its own folder in .cache/peers with the older packages and copies of the packages under test, so that Node
 * resolves the older packages from there, also in child processes. `peer-versions.test.ts` fails if another version is
 * loaded.
 *
 * The last line is `N passed, N failed`.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { argv, exit } from "node:process";

import { runTests } from "./run-tests.mjs";
import { build, dependencies, npm, redisServer, root, stop } from "./setup.mjs";

/**
 * @typedef {object} Older
 * @property {string} name
 * @property {Record<string, string>} peers  exact versions
 * @property {string} project  the package under test
 * @property {readonly string[]} files  its test files
 */

const NEST = [
  "peer-versions",
  "legacy-decorators/application",
  "legacy-decorators/faults",
  "legacy-decorators/locked",
  "legacy-decorators/starts",
  "standard-decorators",
];
const SAME = { "reflect-metadata": "0.2.2", rxjs: "7.8.2" };

/** @type {readonly Older[]} */
const SETS = [
  {
    name: "nest-10",
    peers: {
      ...SAME,
      "@nestjs/common": "10.4.22",
      "@nestjs/core": "10.4.22",
      "@nestjs/platform-express": "10.4.22",
      "@nestjs/schedule": "5.0.1",
      "@nestjs/testing": "10.4.22",
    },
    project: "nestjs",
    files: NEST,
  },
  {
    name: "nest-11",
    peers: {
      ...SAME,
      "@nestjs/common": "11.2.10",
      "@nestjs/core": "11.2.10",
      "@nestjs/platform-express": "11.2.10",
      "@nestjs/schedule": "6.1.3",
      "@nestjs/testing": "11.2.6",
    },
    project: "nestjs",
    files: NEST,
  },
  {
    name: "bullmq-5",
    peers: { bullmq: "5.81.5" },
    project: "bullmq",
    files: ["bullmq", "bullmq-loss", "peer-versions"],
  },
];

const HOME = join(root, ".cache/peers");
/** The packages under test, and those that they and their tests import. */
const LIBRARIES = ["holdfast", "embedded", "recipes", "bullmq", "nestjs"];

/** Installs the packages of a set, unless these versions are installed. @param {Older} set */
function install({ name, peers }) {
  const folder = join(HOME, name);
  const mark = join(folder, ".installed");
  const wanted = JSON.stringify(peers);
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return;
  console.log(`setup: installing the packages of ${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, private: true, type: "module" }));
  const packages = Object.entries(peers).map(([peer, version]) => `${peer}@${version}`);
  const trouble = npm("install", "--prefix", folder, "--no-save", "--no-package-lock", ...packages);
  if (trouble !== "") stop(`the packages of ${name} could not be installed:\n${trouble}`);
  writeFileSync(mark, wanted);
}

/** Copies the current packages under test to the folder of a set. @param {Older} set */
function copy({ name, peers, project, files }) {
  const folder = join(HOME, name);
  const tests = files.map((file) => `packages/${project}/tests/${file}.test.ts`);
  for (const each of ["packages", "tests", "verify"]) rmSync(join(folder, each), { recursive: true, force: true });
  const settings = ["vitest.config.ts", "tsconfig.base.json", "tsconfig.tests.json", "tests/support", "verify/src"];
  for (const each of [...settings, ...LIBRARIES.map((library) => `packages/${library}`)]) {
    cpSync(join(root, each), join(folder, each), {
      recursive: true,
      filter: (from) => {
        const path = relative(root, from);
        return !path.endsWith("node_modules") && (!path.endsWith(".test.ts") || tests.includes(path));
      },
    });
  }

  for (const library of LIBRARIES) {
    // The package's own node_modules have the dependencies that are not replaced.
    const own = join(root, "packages", library, "node_modules");
    if (existsSync(own)) symlinkSync(own, join(folder, "packages", library, "node_modules"), "junction");
    // Programs of tests import the library as users do.
    const installed = join(folder, "node_modules", library === "holdfast" ? library : `@holdfast/${library}`);
    rmSync(installed, { recursive: true, force: true });
    mkdirSync(dirname(installed), { recursive: true });
    symlinkSync(join(folder, "packages", library), installed, "junction");
  }

  const manifest = join(folder, "packages", project, "package.json");
  const described = JSON.parse(readFileSync(manifest, "utf8"));
  for (const [peer, version] of Object.entries(peers)) described.devDependencies[peer] = version;
  writeFileSync(manifest, JSON.stringify(described));
}

const args = argv.slice(2);
const options = args.filter((arg) => arg.startsWith("-"));
const filters = args.filter((arg) => !arg.startsWith("-"));
const chosen = SETS.filter(({ name }) => filters.length === 0 || filters.some((filter) => name.includes(filter)));
if (chosen.length === 0) {
  const names = SETS.map(({ name }) => name).join(", ");
  stop(`no set of older packages matches ${filters.join(" or ")}; the sets are ${names}`);
}

await dependencies();
await build();
const redis = await redisServer();
for (const set of chosen) {
  install(set);
  copy(set);
}
const config = join(HOME, "vitest.config.mjs");
const projects = chosen.map(({ name }) => `./${name}`);
writeFileSync(config, `export default ${JSON.stringify({ test: { projects } })};\n`);
exit(
  await runTests(["--root", HOME, "--config", config, "--no-file-parallelism", ...options], {
    HOLDFAST_REDIS_SERVER: redis,
  }),
);
