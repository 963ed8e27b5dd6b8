// @ts-check
/**
 * npm run release [-- --dry-run]: packs every published package, checks what was packed, and publishes it.
 *
 * With --dry-run nothing is published, and no network is needed. Without it, the command runs only in CI, where npm can attest
 * which workflow built the package (provenance), and only on a clean checkout.
 *
 * The last line is `N passed, N failed`.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, execPath, exit } from "node:process";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

import { complaintsAbout, inOrder } from "./release-checks.mjs";
import { build, dependencies, root, stop } from "./setup.mjs";

const isDryRun = argv.includes("--dry-run");
if (!isDryRun) {
  if (env.CI !== "true") stop("a release is published by the workflow `release`; run: npm run release -- --dry-run");
  const changed = execFileSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
  if (changed !== "") stop(`a release needs a clean checkout; changed:\n${changed}`);
}
await dependencies();
await build();

const work = mkdtempSync(join(tmpdir(), "holdfast-release-"));
/** @type {string[]} */
const failed = [];
let passed = 0;
try {
  const packages = inOrder(
    readdirSync(join(root, "packages")).map((folder) => ({
      folder,
      manifest: JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8")),
    })),
  );
  const versions = new Set(packages.map(({ manifest }) => manifest.version));
  check("all packages have one version", versions.size === 1 ? [] : [[...versions].join(", ")]);
  if (packages.some(({ manifest }) => manifest.repository === undefined))
    console.log("· no package names a repository, homepage or address for bugs: the project has no public address yet");

  /** @type {string[]} */
  const tarballs = [];
  for (const { folder, manifest } of packages) {
    const home = join(root, "packages", folder);
    const printed = run("npm", ["pack", "--silent", "--pack-destination", work], home);
    const tarball = join(work, printed.trim().split("\n").at(-1) ?? "");
    tarballs.push(tarball);
    run("tar", ["-xzf", tarball, "-C", work, "--one-top-level"], work);
    const packed = join(work, tarball.slice(work.length + 1, -".tgz".length), "package");
    check(`${manifest.name}: contents`, complaintsAbout(filesOf(packed), manifest.version));
    const { messages, pkg } = await publint({ pkgDir: packed, pack: false, strict: true });
    check(
      `${manifest.name}: publint`,
      messages.map((message) => formatMessage(message, pkg) ?? message.code),
    );
    if (manifest.exports?.["."] !== undefined || Object.keys(manifest.exports ?? {}).length > 1) {
      const attw = join(root, "node_modules/@arethetypeswrong/cli/dist/index.js");
      check(
        `${manifest.name}: types resolve`,
        complaintsOf(execPath, [attw, tarball, "--profile", "esm-only", "--format", "ascii"]),
      );
    }
  }
  if (!isDryRun && failed.length === 0)
    for (const tarball of tarballs) run("npm", ["publish", tarball, "--provenance", "--access", "public"], work);
} finally {
  rmSync(work, { recursive: true, force: true });
}
for (const failure of failed) console.log(`failed: ${failure}`);
console.log(`${passed} passed, ${failed.length} failed`);
exit(failed.length === 0 ? 0 : 1);

/**
 * @param {string} what
 * @param {readonly string[]} complaints
 */
function check(what, complaints) {
  console.log(`${complaints.length === 0 ? "✓" : "✗"} ${what}`);
  if (complaints.length === 0) passed += 1;
  else failed.push(`${what}: ${complaints.join("; ")}`);
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} cwd
 * @returns {string} what it printed
 */
function run(command, args, cwd) {
  return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @returns {string[]} what it printed, if it failed
 */
function complaintsOf(command, args) {
  try {
    execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    return [];
  } catch (error) {
    const { stdout = "", stderr = "" } = /** @type {{ stdout?: string, stderr?: string }} */ (error);
    return [`${stdout}${stderr}`.trim() || String(error)];
  }
}

/**
 * The files of a packed package: of each its path from there, and its text.
 *
 * @param {string} folder
 * @returns {ReadonlyMap<string, string>}
 */
function filesOf(folder) {
  if (!existsSync(folder)) return new Map();
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(folder.length + 1).replaceAll("\\", "/"), readFileSync(path, "utf8")];
    }),
  );
}
