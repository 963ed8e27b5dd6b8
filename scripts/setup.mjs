// @ts-check
/**
 * What the commands share: bring a fresh machine to the point where the work can begin.
 *
 * Built-ins of Node only, since these run before anything is installed. Each step looks first whether it is
 * needed, so that the second time is quick and needs no network.
 */
import { spawn, spawnSync } from "node:child_process";
import { accessSync, chmodSync, constants, existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { env, execPath, exit, getuid } from "node:process";
import { fileURLToPath } from "node:url";

/** The checkout, as a path. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** The tools, as scripts for this very Node, so that no shell and no PATH comes between. */
export const tools = {
  buildLua: join(root, "packages/holdfast/scripts/build-lua.mjs"),
  buildManual: join(root, "packages/cli/scripts/build-manual.mjs"),
  tsc: join(root, "node_modules/@typescript/native/bin/tsc"),
  buildConsole: join(root, "packages/console/scripts/build-pages.mjs"),
  vitest: join(root, "node_modules/vitest/vitest.mjs"),
  oxlint: join(root, "node_modules/oxlint/bin/oxlint"),
  biome: join(root, "node_modules/@biomejs/biome/bin/biome"),
  cspell: join(root, "node_modules/cspell/bin.mjs"),
};

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} [extraEnv]
 * @param {number | "inherit"} [stdout]  file descriptor for its standard output
 * @returns {Promise<number>} the exit code; 1 if it could not start or was ended by a signal
 */
export function run(command, args, extraEnv = {}, stdout = "inherit") {
  return new Promise((resolve) => {
    const stdio = /** @type {const} */ (["inherit", stdout, "inherit"]);
    const child = spawn(command, args, { cwd: root, stdio: [...stdio], env: { ...env, ...extraEnv } });
    // Ctrl-C reaches the child as well; it decides how to end, and we follow with its code.
    const wait = () => {};
    process.on("SIGINT", wait);
    child.on("error", (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(1);
    });
    child.on("exit", (code) => {
      process.off("SIGINT", wait);
      resolve(code ?? 1);
    });
  });
}

/**
 * Runs a script on this Node.
 *
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} [extraEnv]
 * @param {number} [stdout]  file descriptor for its standard output
 */
export function node(args, extraEnv, stdout) {
  return run(execPath, args, extraEnv, stdout);
}

/** Installs the dependencies of the lock file, unless just these are there. */
export async function dependencies() {
  if (isInstalled()) return;
  console.log("setup: installing dependencies (npm ci)");
  if (npm("ci") === "") return;
  // npm ci refuses a lock file without the binaries of every platform, which a registry that lacks some of them
  // leaves behind. npm install follows the same lock file and adds what this platform needs.
  console.log("setup: npm ci refused the lock file, installing from it with npm install");
  const trouble = npm("install", "--no-save");
  if (trouble !== "") stop(`the dependencies could not be installed; run: npm install\n${trouble}`);
}

/**
 * Runs npm, without scripts of packages.
 *
 * @param {readonly string[]} words
 * @returns {string} what went wrong; empty when nothing did
 */
export function npm(...words) {
  const args = [...words, "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  const cli = env.npm_execpath;
  const [command, first] = cli?.endsWith(".js") ? [execPath, [cli]] : ["npm", []];
  const { status, stderr } = spawnSync(command, [...first, ...args], { cwd: root, encoding: "utf8" });
  return status === 0 ? "" : stderr || `${command} could not be started`;
}

/** npm's record of what it installed is compared with the lock file, since times of files say little after a checkout. */
function isInstalled() {
  const record = join(root, "node_modules/.package-lock.json");
  if (!existsSync(record)) return false;
  const wanted = packagesOf(join(root, "package-lock.json"));
  const present = packagesOf(record);
  return Object.entries(wanted).every(([path, { version, optional, link }]) => {
    if (!path.includes("node_modules/")) return true;
    const entry = present[path];
    // An optional package of another platform is rightly absent.
    return entry === undefined ? optional === true : link === true || entry.version === version;
  });
}

/**
 * @param {string} file
 * @returns {Record<string, { version?: string, optional?: boolean, link?: boolean }>}
 */
function packagesOf(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}

/**
 * Writes the generated Lua constants, compiles all workspaces and builds the console's pages, or stops. All are
 * incremental.
 */
export async function build() {
  if ((await node([tools.buildLua])) !== 0) stop("the Lua scripts were refused, see above");
  if ((await node([tools.tsc, "-b"])) !== 0) stop("the build failed, see above");
  // `npx holdfast` runs it as a program, and the compiler writes no program.
  chmodSync(join(root, "packages/cli/dist/main.js"), 0o755);
  if ((await node([tools.buildConsole])) !== 0) stop("the pages of the console could not be built, see above");
}

/**
 * A redis-server binary: that of HOLDFAST_REDIS_SERVER or of PATH, installed if need be.
 *
 * @returns {Promise<string>} its path
 */
export async function redisServer() {
  const found = env.HOLDFAST_REDIS_SERVER ?? onPath("redis-server");
  if (found !== undefined) return found;
  await installRedis();
  return (
    onPath("redis-server") ??
    stop("redis-server is missing; install it (apt-get install redis-server, or brew install redis)")
  );
}

async function installRedis() {
  if (onPath("apt-get") !== undefined) {
    if (!mayInstall()) stop("redis-server is missing; run: sudo apt-get install redis-server");
    await aptInstall("redis-server");
  } else if (onPath("brew") !== undefined) {
    console.log("setup: installing redis (brew)");
    await run("brew", ["install", "--quiet", "redis"]);
  }
}

/**
 * PostgreSQL, for the example that checks tokens in it. It is large for one test, so it is installed only if CI=true;
 * elsewhere a message asks for it. If it is missing in CI, the test fails.
 */
export async function postgres() {
  if (hasPostgres()) return;
  if (env.CI === "true" && onPath("apt-get") !== undefined && mayInstall()) await aptInstall("postgresql");
  if (!hasPostgres()) {
    console.log(
      "setup: PostgreSQL is missing, so its example is not run; install it (apt-get install postgresql), or set HOLDFAST_POSTGRES_BIN to the folder of initdb",
    );
  }
}

/** As tests/support/postgres-server.ts looks for it. */
function hasPostgres() {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const folders = [env.HOLDFAST_POSTGRES_BIN ?? "", ...versions.map((version) => join(debian, version, "bin"))];
  return onPath("initdb") !== undefined || folders.some((folder) => existsSync(join(folder, "initdb")));
}

/** Whether packages can be installed without a password. */
export function mayInstall() {
  return getuid?.() === 0 || spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status === 0;
}

/**
 * Installs packages of Debian, without a word unless something is wrong.
 *
 * @param {readonly string[]} names
 */
export async function aptInstall(...names) {
  console.log(`setup: installing ${names.join(" ")} (apt-get)`);
  const sudo = getuid?.() === 0 ? [] : ["sudo", "-n"];
  // RUNLEVEL=1 keeps the package from starting its service: the tests start servers of their own.
  const apt = [...sudo, "env", "RUNLEVEL=1", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"];
  const install = [...apt, "install", "-y", "--no-install-recommends", ...names];
  if ((await runAll(install)) !== 0 && (await runAll([...apt, "update"])) === 0) await runAll(install);
}

/** @param {readonly string[]} words */
function runAll([command = "", ...args]) {
  return run(command, args);
}

/** @param {string} program */
export function onPath(program) {
  return (env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/**
 * Ends the command with one line that says what to do.
 *
 * @param {string} reason
 * @returns {never}
 */
export function stop(reason) {
  console.error(`setup: ${reason}`);
  exit(1);
}
