// @ts-check
/**
 * Shared by the commands: sets up a new machine.
 *
 * Uses only Node's built-in modules, because it runs before anything is installed. Each step first checks whether it is
 * needed, so the second run is fast and needs no network.
 */
import { spawn, spawnSync } from "node:child_process";
import { accessSync, chmodSync, constants, existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { env, execPath, exit, getuid } from "node:process";
import { fileURLToPath } from "node:url";

/** The root of the checkout. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** The tools as scripts that run on this Node, independent of the shell and PATH. */
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
 * @returns {Promise<number>} the exit code; 1 if it could not start or a signal ended it
 */
export function run(command, args, extraEnv = {}, stdout = "inherit") {
  return new Promise((resolve) => {
    const stdio = /** @type {const} */ (["inherit", stdout, "inherit"]);
    const child = spawn(command, args, { cwd: root, stdio: [...stdio], env: { ...env, ...extraEnv } });
    // Ctrl-C also reaches the child. It decides how to end, and this process exits with its code.
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

/** Installs the dependencies in the lock file, unless these versions are installed. */
export async function dependencies() {
  if (isInstalled()) return;
  console.log("setup: installing dependencies (npm ci)");
  if (npm("ci") === "") return;
  // npm ci refuses a lock file without the binaries of every platform. npm writes such a file if a registry lacks some of
  // them. npm install follows the same lock file and adds what this platform needs.
  console.log("setup: npm ci refused the lock file, installing from it with npm install");
  const trouble = npm("install", "--no-save");
  if (trouble !== "") stop(`the dependencies could not be installed; run: npm install\n${trouble}`);
}

/**
 * Runs npm without the scripts of packages.
 *
 * @param {readonly string[]} words
 * @returns {string} the error output; empty on success
 */
export function npm(...words) {
  const args = [...words, "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  const cli = env.npm_execpath;
  const [command, first] = cli?.endsWith(".js") ? [execPath, [cli]] : ["npm", []];
  const { status, stderr } = spawnSync(command, [...first, ...args], { cwd: root, encoding: "utf8" });
  return status === 0 ? "" : stderr || `${command} could not be started`;
}

/** Compares npm's record of what it installed with the lock file. Modification times say little after a checkout. */
function isInstalled() {
  const record = join(root, "node_modules/.package-lock.json");
  if (!existsSync(record)) return false;
  const wanted = packagesOf(join(root, "package-lock.json"));
  const present = packagesOf(record);
  return Object.entries(wanted).every(([path, { version, optional, link }]) => {
    if (!path.includes("node_modules/")) return true;
    const entry = present[path];
    // An optional package for another platform is not installed.
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
 * Generates the Lua constants, compiles all workspaces and builds the console's pages. All steps are incremental. Stops if
 * one fails.
 */
export async function build() {
  if ((await node([tools.buildLua])) !== 0) stop("the Lua scripts were refused, see above");
  if ((await node([tools.tsc, "-b"])) !== 0) stop("the build failed, see above");
  // `npx holdfast` needs an executable file, and the compiler does not set the mode.
  chmodSync(join(root, "packages/cli/dist/main.js"), 0o755);
  if ((await node([tools.buildConsole])) !== 0) stop("the pages of the console could not be built, see above");
}

/**
 * The redis-server binary from HOLDFAST_REDIS_SERVER or PATH. Installs it if necessary.
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
 * PostgreSQL, for the example that checks fencing tokens in it. It is large for one test, so only CI=true installs it;
 * elsewhere, a message says how to. If it is missing in CI, the test fails.
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

/** Looks in the same places as tests/support/postgres-server.ts. */
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
 * Installs Debian packages. Shows apt's output only if it fails.
 *
 * @param {readonly string[]} names
 */
export async function aptInstall(...names) {
  console.log(`setup: installing ${names.join(" ")} (apt-get)`);
  const sudo = getuid?.() === 0 ? [] : ["sudo", "-n"];
  // RUNLEVEL=1 keeps the package from starting its service. Tests start their own servers.
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
