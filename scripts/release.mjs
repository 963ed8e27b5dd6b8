// @ts-check
/**
 * npm run release [-- --dry-run]: packs every published package, checks the result and publishes it.
 *
 * With --dry-run nothing is published, and no network is needed. Without it, the command runs only on a clean checkout in
 * CI, where npm can attest which workflow built the package (provenance). It publishes only versions that the registry does
 * not have yet, so a failed release can be repeated, and a commit without a new version publishes nothing.
 *
 * The last line is `N passed, N failed`.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, exit } from "node:process";

import { complaintsAbout, entryFiles, inOrder, missingAddresses, versionsApart } from "./release-checks.mjs";
import { isPublished, lint, refusalsOfNpm, typesThatDoNotResolve } from "./release-tools.mjs";
import { build, dependencies, root, stop } from "./setup.mjs";

/** @typedef {import("./release-checks.mjs").Manifest} Manifest */

const isDryRun = argv.includes("--dry-run");
if (!isDryRun) {
  if (env.CI !== "true") stop("a release is published by the workflow `release`; run: npm run release -- --dry-run");
  const changed = execFileSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
  if (changed !== "") stop(`a release needs a clean checkout; changed:\n${changed}`);
}
await dependencies();

const packages = inOrder(
  readdirSync(join(root, "packages"))
    .map((folder) => join(root, "packages", folder))
    .map((home) => ({
      home,
      manifest: /** @type {Manifest} */ (JSON.parse(readFileSync(join(home, "package.json"), "utf8"))),
    }))
    .filter(({ manifest }) => manifest.private !== true),
);
const manifests = packages.map(({ manifest }) => manifest);
/** @type {string[]} */
const failed = [];
let passed = 0;

check("all packages have one version", versionsApart(manifests));
const addresses = missingAddresses(manifests);
if (isDryRun && addresses.length === packages.length)
  console.log("· warning: no package has repository, homepage and bugs, because the project has no public address yet");
else check("all packages have public addresses, which provenance needs", addresses);

/** @type {readonly Manifest[]} */
let unpublished = [];
if (!isDryRun && failed.length === 0) {
  const isThere = await Promise.all(manifests.map(isPublished));
  unpublished = manifests.filter((_, at) => !isThere[at]);
}
if (isDryRun || unpublished.length > 0) await packAndPublish();
for (const failure of failed) console.log(`failed: ${failure}`);
console.log(`${passed} passed, ${failed.length} failed`);
exit(failed.length === 0 ? 0 : 1);

async function packAndPublish() {
  await build();
  const work = mkdtempSync(join(tmpdir(), "holdfast-release-"));
  try {
    /** @type {Map<Manifest, string>} */
    const tarballs = new Map();
    for (const { home, manifest } of packages) tarballs.set(manifest, await packed(home, manifest, work));
    if (isDryRun || failed.length > 0) return;
    for (const manifest of unpublished) {
      const words = ["publish", tarballs.get(manifest) ?? "", "--provenance", "--access", "public"];
      check(`${manifest.name}: published`, complaintsOf("npm", words, work));
      // Stop here, because the next packages may need this one.
      if (failed.length > 0) return;
    }
    // One tag for all packages. The action that runs this command reads the name from this line, pushes the tag, and
    // describes it with the changelog.
    const tag = `holdfast@${manifests[0]?.version}`;
    execFileSync("git", ["tag", tag], { cwd: root });
    console.log(`New tag: ${tag}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/**
 * Packs a package as npm publishes it, and checks the result.
 *
 * @param {string} home
 * @param {Manifest} manifest
 * @param {string} work
 * @returns {Promise<string>} the tarball
 */
async function packed(home, manifest, work) {
  const file = `${manifest.name.replace("@", "").replace("/", "-")}-${manifest.version}.tgz`;
  const tarball = join(work, file);
  const folder = join(work, file.slice(0, -".tgz".length), "package");
  const words = ["pack", "--foreground-scripts", "--loglevel", "error", "--pack-destination", work];
  const complaints = complaintsOf("npm", words, home);
  check(`${manifest.name}: packed`, complaints);
  if (complaints.length > 0) return tarball;
  execFileSync("tar", ["-xzf", tarball, "-C", work, "--one-top-level"]);
  check(`${manifest.name}: contents`, complaintsAbout(filesOf(folder), manifest.version));
  check(`${manifest.name}: publint`, await lint(folder));
  if (entryFiles({ exports: manifest.exports }).length > 0)
    check(`${manifest.name}: types resolve`, typesThatDoNotResolve(tarball));
  check(`${manifest.name}: npm publish --dry-run`, refusalsOfNpm(folder));
  return tarball;
}

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
 * @returns {string[]} its output if it failed; otherwise empty
 */
function complaintsOf(command, args, cwd) {
  try {
    execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    return [];
  } catch (error) {
    const { stdout = "", stderr = "" } = /** @type {{ stdout?: string, stderr?: string }} */ (error);
    return [`${stdout}${stderr}`.trim() || String(error)];
  }
}

/**
 * The files of a packed package: the text of each file, by its path in the package.
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
