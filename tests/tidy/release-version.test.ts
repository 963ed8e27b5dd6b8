import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

import { root } from "../../scripts/setup.mjs";

interface Manifest {
  readonly name: string;
  readonly version?: string;
  readonly private?: true;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** A copy of all manifests, with one minor change of `holdfast`. */
let copy: string;
const workspaces = ["examples", "bench", "verify", "interop"];
for (const folder of readdirSync(join(root, "packages"))) workspaces.push(`packages/${folder}`);

function manifest(home: string, workspace: string): Manifest {
  return JSON.parse(readFileSync(join(home, workspace, "package.json"), "utf8")) as Manifest;
}

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "holdfast-version-"));
  const files = ["package.json", "package-lock.json", "biome.json", ".changeset/config.json"];
  for (const file of [...files, ...workspaces.map((folder) => `${folder}/package.json`)]) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file));
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  writeFileSync(join(copy, ".gitignore"), "node_modules\n");
  writeFileSync(join(copy, ".changeset/a.md"), '---\n"holdfast": minor\n---\n\nAdd a thing.\n');
  execFileSync("git", ["init", "--quiet", "--initial-branch=main"], { cwd: copy });
  const env = { ...process.env, npm_config_offline: "true" };
  execFileSync("npm", ["run", "--silent", "release:version"], { cwd: copy, env, stdio: "pipe" });
}, 120_000);

afterAll(() => {
  rmSync(copy, { recursive: true, force: true });
});

it("a minor change of one package bumps the minor version of all packages, and of nothing else", () => {
  const [major, minor] = (manifest(root, "packages/holdfast").version ?? "").split(".").map(Number);
  const next = `${major}.${(minor ?? 0) + 1}.0`;
  const versions = workspaces.map((folder) => [folder, manifest(copy, folder).version]);
  const expected = workspaces.map((folder) => [folder, manifest(root, folder).private ? undefined : next]);
  expect(versions).toEqual(expected);
  expect(manifest(copy, "examples").dependencies?.["@holdfast/recipes"]).toBe(next);
});

it("the change is described in the changelog of holdfast", () => {
  expect(readFileSync(join(copy, "packages/holdfast/CHANGELOG.md"), "utf8")).toContain("- Add a thing.");
});

it("the manifests of the next version keep their format", () => {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  execFileSync(process.execPath, [biome, "format", ...workspaces], { cwd: copy, stdio: "pipe" });
});
