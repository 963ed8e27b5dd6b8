// @ts-check
/** The peers in other languages: the toolchains they need, and how each is built into interop/dist. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { env } from "node:process";

import { aptInstall, mayInstall, onPath, root, stop } from "./setup.mjs";

const PEERS = join(root, "interop/peers");
const BUILT = join(root, "interop/dist");

/** The versions of Redisson that the Java peers are built against. Tests refer to the peers by version. */
const REDISSONS = ["4.7.0", "3.27.2", "3.21.3"];
/** The redis-py release whose Lock is the Python peer. */
const REDIS_PY = "redis==8.1.0";
const OLDEST_JAVA = 17;

/**
 * @typedef {object} Toolchain
 * @property {string} name  as it appears in messages
 * @property {string[]} packages  Debian packages
 * @property {() => boolean} isThere
 */

/** @type {readonly Toolchain[]} */
const TOOLCHAINS = [
  {
    name: `a JDK (${OLDEST_JAVA} or later)`,
    packages: ["openjdk-17-jdk-headless"],
    isThere: () => Number(/javac (\d+)/.exec(said("javac", "-version"))?.[1] ?? 0) >= OLDEST_JAVA,
  },
  { name: "Maven", packages: ["maven"], isThere: () => works("mvn", "-v") },
  {
    name: "PHP with its redis extension",
    packages: ["php-cli", "php-redis"],
    isThere: () => works("php", "-r", "exit(extension_loaded('redis') ? 0 : 1);"),
  },
  {
    name: "g++ with hiredis",
    packages: ["g++", "libhiredis-dev"],
    isThere: () => works("g++", "-x", "c++", "-include", "hiredis/hiredis.h", "-fsyntax-only", "/dev/null"),
  },
  {
    name: "Python 3 with pip",
    packages: ["python3", "python3-pip"],
    isThere: () => works("python3", "-m", "pip", "--version"),
  },
  { name: "redis-cli", packages: ["redis-tools"], isThere: () => works("redis-cli", "--version") },
  { name: "faketime", packages: ["faketime"], isThere: () => works("faketime", "-f", "+1s", "true") },
];

/** Checks that every toolchain is installed. In CI it installs missing ones; elsewhere it stops and names them. */
export async function toolchains() {
  if (env.CI === "true" && mayInstall() && onPath("apt-get") !== undefined) {
    const packages = missing().flatMap((each) => each.packages);
    if (packages.length > 0) await aptInstall(...packages);
  }
  const lacking = missing();
  if (lacking.length === 0) return;
  const names = lacking.map(({ name }) => name).join(", ");
  const packages = lacking.flatMap((each) => each.packages).join(" ");
  stop(`test:interop needs ${names}; on Debian run: sudo apt-get install ${packages}`);
}

function missing() {
  return TOOLCHAINS.filter(({ isThere }) => !isThere());
}

/**
 * @typedef {object} Recipe
 * @property {string} name  its folder in interop/dist
 * @property {string} sources  its folder in interop/peers
 * @property {(folder: string) => string[]} command
 */

/**
 * @param {string} version  the version of Redisson
 * @param {string} folder
 */
function maven(version, folder) {
  const settings = [`-Dredisson.version=${version}`, `-Dpeers.build=${folder}`];
  return ["mvn", "-q", "-B", "-f", join(PEERS, "java/pom.xml"), ...settings, "process-classes"];
}

/** @type {readonly Recipe[]} */
const RECIPES = [
  ...REDISSONS.map((version) => ({
    name: `java-${version}`,
    sources: "java",
    command: (/** @type {string} */ folder) => maven(version, folder),
  })),
  {
    name: "cpp",
    sources: "cpp",
    command: (folder) => [
      "g++",
      "-std=c++17",
      "-O1",
      "-Wall",
      "-Wextra",
      "-Werror",
      join(PEERS, "cpp/article_d.cpp"),
      "-lhiredis",
      "-o",
      join(folder, "article-d"),
    ],
  },
  {
    name: "python",
    sources: "python",
    command: (folder) => [
      "python3",
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      "--root-user-action=ignore",
      "--target",
      folder,
      REDIS_PY,
    ],
  },
];

/** Builds every peer that is missing or whose sources have changed. Stops if that fails. PHP and shell need no build. */
export async function buildPeers() {
  for (const recipe of RECIPES) {
    const trouble = built(recipe);
    if (trouble !== "") stop(`the peer ${recipe.name} could not be built:\n${trouble}`);
  }
}

/**
 * Builds a peer unless it is up to date.
 *
 * @param {Recipe} recipe
 * @returns {string} the error output; empty on success
 */
function built({ name, sources, command }) {
  const folder = join(BUILT, name);
  const words = command(folder);
  const recipe = digest(join(PEERS, sources), words);
  const mark = join(folder, ".recipe");
  if (existsSync(mark) && readFileSync(mark, "utf8") === recipe) return "";
  console.error(`setup: building the peer ${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const [program = "", ...args] = words;
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) return `${stdout ?? ""}${stderr ?? ""}` || String(error);
  writeFileSync(mark, recipe);
  return "";
}

/**
 * A peer of the benchmark: the program that carries out its orders, or the reason why it is missing.
 *
 * @typedef {{ program: readonly string[] } | { missing: string }} BenchPeer
 */

/** The location of Go after its own installer, which does not add it to PATH. */
const GO_OF_INSTALLER = "/usr/local/go/bin/go";

/** @returns {string | undefined} */
function go() {
  return ["go", GO_OF_INSTALLER].find((command) => works(command, "version"));
}

/** @type {Record<string, () => BenchPeer>} */
const BENCH_PEERS = {
  redisson() {
    const lacking = TOOLCHAINS.slice(0, 2).filter(({ isThere }) => !isThere());
    if (lacking.length > 0) {
      const packages = lacking.flatMap((each) => each.packages).join(" ");
      const names = lacking.map(({ name }) => name).join(" and ");
      return { missing: `it needs ${names}; on Debian run: sudo apt-get install ${packages}` };
    }
    const [version = ""] = REDISSONS;
    const name = "java-bench";
    const command = (/** @type {string} */ folder) => [...maven(version, folder), "-Dpeers.excluded=none"];
    const trouble = built({ name, sources: "java", command });
    if (trouble !== "") return { missing: `it could not be built: ${firstLine(trouble)}` };
    const folder = join(BUILT, name);
    return { program: ["java", "-cp", `${join(folder, "classes")}:${join(folder, "lib")}/*`, "peers.BenchPeer"] };
  },
  rueidislock() {
    const compiler = go();
    if (compiler === undefined) return { missing: "it needs Go 1.25 or later" };
    const command = (/** @type {string} */ folder) => [
      compiler,
      "build",
      "-C",
      join(PEERS, "go"),
      "-trimpath",
      "-o",
      join(folder, "peer"),
      ".",
    ];
    const trouble = built({ name: "go", sources: "go", command });
    if (trouble !== "") return { missing: `it could not be built: ${firstLine(trouble)}` };
    return { program: [join(BUILT, "go/peer")] };
  },
};

/**
 * Builds the wanted peers of the benchmark. A peer that cannot be built has a reason instead of a program.
 *
 * @param {readonly string[]} wanted  names of contestants; those that are not peers in other languages are ignored
 * @returns {Record<string, BenchPeer>}
 */
export function benchPeers(wanted) {
  const names = Object.keys(BENCH_PEERS).filter((name) => wanted.includes(name));
  return Object.fromEntries(names.map((name) => [name, BENCH_PEERS[name]?.() ?? { missing: "it is not known" }]));
}

/** The names of all peers of the benchmark. */
export const BENCH_PEER_NAMES = Object.keys(BENCH_PEERS);

/** @param {string} text */
function firstLine(text) {
  return text.trim().split("\n")[0] ?? "";
}

/**
 * A digest of a build's sources and command. Modification times say little after a checkout.
 *
 * @param {string} folder
 * @param {readonly string[]} words
 */
function digest(folder, words) {
  const hash = createHash("sha256").update(JSON.stringify(words));
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted()) {
    const path = join(folder, file);
    if (statSync(path).isFile()) hash.update(`${file}\0`).update(readFileSync(path));
  }
  return hash.digest("hex");
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 */
function works(program, ...args) {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 */
function said(program, ...args) {
  const { stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  return `${stdout ?? ""}${stderr ?? ""}`;
}
