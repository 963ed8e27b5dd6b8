// @ts-check
/**
 * Builds what is published: the package with a few bundled files instead of a hundred.
 *
 *     node packages/holdfast/scripts/pack.mjs [folder]
 *
 * Opening a file costs Node more than reading it, so bundling saves most of the time that an import takes. In the repository
 * the compiled files stay as they are: a stack trace leads to the source, and a change needs no bundling.
 * Files that several entry points share are separate, because an error must be of the same class in all of them.
 *
 * `npm pack` and `npm publish` use it too: see scripts/prepack.mjs.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const home = fileURLToPath(new URL("..", import.meta.url));

/**
 * Writes the package to `target`, from the compiled files.
 *
 * @param {string} target
 * @returns {Promise<void>}
 */
export async function pack(target) {
  const manifest = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  const entries = Object.values(manifest.exports).flatMap((entry) => entry.default ?? []);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((file) => [file.replace(/^\.\/dist\/|\.js$/g, ""), join(home, file)])),
    external: [/^node:/, "vitest", ...Object.keys(manifest.peerDependencies)],
    platform: "node",
  });
  // What the main entry loads is one file, whichever parts of it other entries share: two files compress less well than one.
  const ofLibrary = reachedFrom(join(home, "dist/index.js"));
  const library = { name: "library", test: (/** @type {string} */ id) => ofLibrary.has(id) };
  // Functions and classes keep their names, so that an error's stack can be read.
  const names = { chunkFileNames: "shared-[hash].js", keepNames: true };
  await bundle.write({ dir: join(target, "dist"), minify: true, ...names, codeSplitting: { groups: [library] } });
  await bundle.close();
  for (const file of readdirSync(join(home, "dist"), { encoding: "utf8", recursive: true })) {
    if (!file.endsWith(".d.ts")) continue;
    // The sources are not published, so the declarations must not name maps that lead to them.
    const declarations = readFileSync(join(home, "dist", file), "utf8").replace(/^\/\/# sourceMappingURL=.*\n?/gm, "");
    mkdirSync(dirname(join(target, "dist", file)), { recursive: true });
    writeFileSync(join(target, "dist", file), declarations);
  }
  for (const file of ["README.md", "LICENSE"]) cpSync(join(home, file), join(target, file));
  const { devDependencies: _, ...published } = manifest;
  writeFileSync(join(target, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
}

/**
 * A compiled file and all that it imports.
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
  await pack(argv[2] ?? join(home, "packs"));
}
