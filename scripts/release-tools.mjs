// @ts-check
/** Runs publint, attw and npm on a packed package. */
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { execPath } from "node:process";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

import { root } from "./setup.mjs";

/** @typedef {import("./release-checks.mjs").Manifest} Manifest */

/**
 * The complaints of publint about a packed package.
 *
 * @param {string} folder
 * @returns {Promise<string[]>}
 */
export async function lint(folder) {
  const { messages, pkg } = await publint({ pkgDir: folder, pack: false, strict: true });
  return messages.map((message) => formatMessage(message, pkg) ?? message.code);
}

/**
 * The complaints of attw about the types of a tarball.
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
 * Lists what `npm publish` would refuse or change. Needs no network: `--force` skips the check of published versions, and
 * no registry runs at the given address.
 *
 * @param {string} folder  the folder of a packed package
 * @returns {string[]}
 */
export function refusalsOfNpm(folder) {
  const offline = ["--force", "--ignore-scripts", "--registry", "http://127.0.0.1:9", "--fetch-retries", "0"];
  const { status, stderr } = ran("npm", ["publish", "--dry-run", ...offline], folder);
  const wrong = stderr.split("\n").filter((line) => /^npm (error|warn publish (?!This command requires))/.test(line));
  return status === 0 || wrong.length > 0 ? wrong : [`npm ended with ${status}: ${stderr}`];
}

/**
 * Whether the registry has this version, so that a failed or interrupted release can be repeated.
 *
 * @param {Manifest} manifest
 * @returns {Promise<boolean>}
 * @throws Error  it is unknown whether the registry has it
 */
export function isPublished({ name, version }) {
  return new Promise((resolve, reject) => {
    execFile("npm", ["view", `${name}@${version}`, "version", "--json"], { cwd: root }, (error, stdout, stderr) => {
      // For a missing version npm prints nothing or E404. For a missing package it prints E404.
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
