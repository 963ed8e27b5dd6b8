// @ts-check
/** What publint, attw and npm say about a packed package. */
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { execPath } from "node:process";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

import { root } from "./setup.mjs";

/** @typedef {import("./release-checks.mjs").Manifest} Manifest */

/**
 * What publint says about a packed package.
 *
 * @param {string} folder
 * @returns {Promise<string[]>}
 */
export async function lint(folder) {
  const { messages, pkg } = await publint({ pkgDir: folder, pack: false, strict: true });
  return messages.map((message) => formatMessage(message, pkg) ?? message.code);
}

/**
 * What attw says about the types of a tarball.
 *
 * @param {string} tarball
 * @returns {string[]}
 */
export function typesThatDoNotResolve(tarball) {
  const attw = join(root, "node_modules/@arethetypeswrong/cli/dist/index.js");
  const { status, stdout, stderr } = ran(execPath, [attw, tarball, "--profile", "esm-only", "--format", "ascii"], root);
  return status === 0 ? [] : [`${stdout}${stderr}`.trim()];
}

/**
 * What `npm publish` would refuse or change. Needs no network: `--force` leaves out the look at what is published, and nothing
 * answers at the address.
 *
 * @param {string} folder  of a packed package
 * @returns {string[]}
 */
export function refusalsOfNpm(folder) {
  const offline = ["--force", "--ignore-scripts", "--registry", "http://127.0.0.1:9", "--fetch-retries", "0"];
  const { status, stderr } = ran("npm", ["publish", "--dry-run", ...offline], folder);
  const wrong = stderr.split("\n").filter((line) => /^npm (error|warn publish (?!This command requires))/.test(line));
  return status === 0 || wrong.length > 0 ? wrong : [`npm ended with ${status}: ${stderr}`];
}

/**
 * Whether the registry has this very version. A failed or interrupted release is repeated: what it published stays.
 *
 * @param {Manifest} manifest
 * @returns {Promise<boolean>}
 * @throws Error  the registry did not say
 */
export function isPublished({ name, version }) {
  return new Promise((resolve, reject) => {
    execFile("npm", ["view", `${name}@${version}`, "version", "--json"], { cwd: root }, (error, stdout, stderr) => {
      // Of a version that is missing, npm prints nothing or, as of a package that is missing, says E404.
      if (error === null) resolve(stdout.includes(`"${version}"`));
      else if (/\bE404\b/.test(`${stdout}${stderr}`)) resolve(false);
      else reject(new Error(`npm view ${name}@${version}: ${stderr.trim()}`));
    });
  });
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} cwd
 */
function ran(command, args, cwd) {
  return spawnSync(command, args, { cwd, encoding: "utf8" });
}
