// @ts-check
/**
 * What is published: the command with a few bundled files in place of three hundred.
 *
 *     node packages/cli/scripts/pack.mjs [folder]
 *
 * `run` is on the start-up path of cron jobs, and opening a file costs Node more than reading it. The command is bundled with
 * the library and the client library, whose licence goes along; each verb stays a file of its own, imported when it is
 * called. What other programs import keeps its imports, since an object of the library has to be of their library. In the
 * repository the compiled files stay as they are.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
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
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  // What is there beside code: pages, declarations, the man page, completions.
  const isCode = (/** @type {string} */ path) =>
    /\.(?:js|map|tsbuildinfo)$/.test(path) && !path.includes(join("console", "ui"));
  for (const folder of manifest.files) {
    if (existsSync(join(home, folder)))
      cpSync(join(home, folder), join(target, folder), { recursive: true, filter: (path) => !isCode(path) });
  }
  await bundle({ main: join(home, manifest.bin.holdfast) }, ["@holdfast/embedded"], target, "command");
  /** @type {{ default?: string }[]} */
  const exported = Object.values(manifest.exports);
  const entries = exported.flatMap(({ default: file = "" }) => (file === "" ? [] : [file]));
  if (entries.length > 0) {
    const input = Object.fromEntries(entries.map((file) => [file.replace(/^\.\/dist\/|\.js$/g, ""), join(home, file)]));
    await bundle(input, Object.keys(manifest.dependencies), target, "shared");
  }
  const clients = createRequire(join(home, "package.json")).resolve("ioredis/package.json");
  cpSync(join(dirname(clients), "LICENSE"), join(target, "dist/LICENSE.ioredis"));
  const { devDependencies: _, ...published } = manifest;
  writeFileSync(join(target, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
}

/**
 * @param {Record<string, string>} input
 * @param {readonly string[]} external
 * @param {string} target
 * @param {string} chunks  what the names of shared files begin with
 */
async function bundle(input, external, target, chunks) {
  const isExternal = (/** @type {string} */ id) =>
    id.startsWith("node:") || external.some((name) => id === name || id.startsWith(`${name}/`));
  const built = await rolldown({ input, external: isExternal, platform: "node" });
  // Functions and classes keep their names, so that an error's stack can be read.
  await built.write({
    dir: join(target, "dist"),
    minify: true,
    keepNames: true,
    chunkFileNames: `${chunks}-[name]-[hash].js`,
  });
  await built.close();
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  await pack(argv[2] ?? join(home, "packs"));
}
