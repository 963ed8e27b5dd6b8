// @ts-check
/**
 * Builds the published form of a library: a package with a few bundled files instead of a hundred.
 *
 *     node scripts/pack.mjs PACKAGE FOLDER      such as `holdfast` or `recipes`
 *
 * Opening a file costs Node more than reading it, so bundling saves most of the time of an import. In the repository, the
 * compiled files stay unbundled: stack traces lead to the source, and a change needs no bundling. Code that several entry
 * points share goes into separate files, because an error must have the same class in all of them.
 *
 * `npm pack` and `npm publish` use it too: see scripts/prepack.mjs.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { inShortLines } from "../packages/cli/scripts/short-lines.mjs";
import { writeDeclarations } from "./declarations.mjs";
import { root } from "./setup.mjs";

/**
 * Writes the package to `target`, from the compiled files.
 *
 * @param {string} home  the folder of the package
 * @param {string} target
 * @returns {Promise<void>}
 */
export async function pack(home, target) {
  const manifest = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  const entries = Object.values(manifest.exports).flatMap((entry) => entry.default ?? []);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  const others = [...Object.keys(manifest.dependencies ?? {}), ...Object.keys(manifest.peerDependencies ?? {})];
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((file) => [file.replace(/^\.\/dist\/|\.js$/g, ""), join(home, file)])),
    external: [/^node:/, "vitest", ...others.map((name) => new RegExp(`^${name}(/|$)`))],
    platform: "node",
  });
  // The main entry loads two files, whichever parts of them other entries share. More files would compress less well, and
  // so would scripts mixed with code, because the scripts repeat each other.
  const ofMain = manifest.main === undefined ? new Set() : reachedFrom(join(home, manifest.main));
  /** @param {string} id */
  const isScript = (id) => dirname(id) === join(home, "dist/generated");
  const scripts = { name: "scripts", test: (/** @type {string} */ id) => ofMain.has(id) && isScript(id) };
  const library = { name: "library", test: (/** @type {string} */ id) => ofMain.has(id) && !isScript(id) };
  // Functions and classes keep their names, so that stack traces are readable.
  const names = { chunkFileNames: "shared-[hash].js", keepNames: true };
  const { output } = await bundle.write({
    dir: join(target, "dist"),
    minify: true,
    ...names,
    codeSplitting: { groups: [scripts, library] },
  });
  await bundle.close();
  for (const file of output) {
    if (file.type === "chunk") writeFileSync(join(target, "dist", file.fileName), inShortLines(file.code));
  }
  writeDeclarations(home, join(target, "dist"));
  const pages = join(home, "dist/ui");
  if (existsSync(pages)) cpSync(pages, join(target, "dist/ui"), { recursive: true });
  for (const file of ["README.md", "LICENSE"]) cpSync(join(home, file), join(target, file));
  const { devDependencies: _, ...published } = manifest;
  // In the repository, any version of `holdfast` is allowed, so that a new version is not a major change for all dependents.
  // Users get exactly this version.
  if (published.peerDependencies?.holdfast !== undefined) published.peerDependencies.holdfast = manifest.version;
  writeFileSync(join(target, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
}

/**
 * A compiled file and all of its imports, direct and indirect.
 *
 * @param {string} entry
 * @returns {ReadonlySet<string>}
 */
function reachedFrom(entry) {
  const reached = new Set([entry]);
  for (const file of reached) {
    const imports = readFileSync(file, "utf8").matchAll(/^(?:import|export)\b[^"]*"(\.[^"]+)";/gm);
    for (const [, specifier = ""] of imports) reached.add(join(dirname(file), specifier));
  }
  return reached;
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  const [, , name = "holdfast", target = join(root, "packages", name, "packs")] = argv;
  await pack(join(root, "packages", name), target);
}
