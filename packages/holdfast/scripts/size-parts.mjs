// @ts-check
/**
 * What the size of `import "holdfast"` is made of, by part of the source: so much smaller would it be without it.
 *
 *     node packages/holdfast/scripts/size-parts.mjs
 *
 * Compression finds in one part what stood in another, so the parts do not add up to the whole.
 */
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { minifySync } from "rolldown/utils";

const dist = join(dirname(fileURLToPath(import.meta.url)), "../dist");
const BYTES_PER_KB = 1_000;

/** @type {Readonly<Record<string, string>>} */
const TITLES = {
  generated: "Lua of all kinds",
  core: "engine",
  stores: "client libraries",
  errors: "errors and their texts",
};

const bundle = await rolldown({
  input: join(dist, "index.js"),
  external: [/^node:/],
  platform: "node",
  logLevel: "silent",
});
const { output } = await bundle.generate({ format: "esm" });
await bundle.close();

/** @type {Map<string, string>} */
const parts = new Map();
for (const chunk of output) {
  if (chunk.type !== "chunk") continue;
  for (const [file, { code }] of Object.entries(chunk.modules)) {
    const part = partOf(relative(dist, file));
    parts.set(part, `${parts.get(part) ?? ""}${minified(file, code ?? "")}`);
  }
}
const whole = sizeOf([...parts.values()]);
const rows = [...parts.keys()]
  .map((part) => ({
    part,
    size: whole - sizeOf([...parts].filter(([other]) => other !== part).map(([, code]) => code)),
  }))
  .toSorted((a, b) => b.size - a.size);
for (const { part, size } of rows) console.log(`${kB(size).padStart(6)} kB  ${part}`);
console.log(`${kB(whole).padStart(6)} kB  all of it`);

/** @param {string} path */
function partOf(path) {
  if (path.startsWith(`core${sep}error`)) return TITLES.errors ?? path;
  const [folder = path, ...rest] = path.split(sep);
  return rest.length === 0 ? "entry and options" : (TITLES[folder] ?? folder);
}

/**
 * @param {string} file
 * @param {string} code
 */
function minified(file, code) {
  return minifySync(file, code).code;
}

/** @param {readonly string[]} codes */
function sizeOf(codes) {
  return gzipSync(codes.join("\n"), { level: 9 }).byteLength;
}

/** @param {number} bytes */
function kB(bytes) {
  return (bytes / BYTES_PER_KB).toFixed(1);
}
