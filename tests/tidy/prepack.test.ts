import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";

import { root } from "../../scripts/setup.mjs";

const MANIFEST = JSON.stringify({ name: "@holdfast/a", type: "module", exports: { ".": "./dist/index.js" } });

/** A package with compiled files that packs itself with the given function body. */
function packageWith(files: Readonly<Record<string, string>>, pack = ""): string {
  const home = mkdtempSync(join(tmpdir(), "holdfast-prepack-"));
  onTestFinished(() => {
    rmSync(home, { recursive: true, force: true });
  });
  const packing = `import { cpSync, mkdirSync, writeFileSync } from "node:fs";\nexport async function pack(target) {
    mkdirSync(target + "/dist", { recursive: true });\n    cpSync("package.json", target + "/package.json");\n    ${pack}\n}\n`;
  for (const [path, text] of Object.entries({ "package.json": MANIFEST, "scripts/pack.mjs": packing, ...files })) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  return home;
}

function prepack(home: string, ...words: string[]) {
  const script = join(root, "scripts/prepack.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...words], { cwd: home, encoding: "utf8" });
  return { status, printed: `${stdout}${stderr}` };
}

const COMPILED = { "dist/index.js": "export const a = 1;\n" };

it.each<[string, Readonly<Record<string, string>>, string, string]>([
  ["was never compiled", {}, "", "@holdfast/a is not compiled: ./dist/index.js is missing; run npm run build"],
  [
    "was compiled in part",
    { "dist/other.js": "export {};\n" },
    "",
    "@holdfast/a is not compiled: ./dist/index.js is missing; run npm run build",
  ],
  [
    "is packed as it was compiled",
    COMPILED,
    'cpSync("dist", target + "/dist", { recursive: true });',
    "@holdfast/a is not bundled: dist/index.js is the compiled file",
  ],
  ["is packed without its entry", COMPILED, "", "@holdfast/a is not bundled: ./dist/index.js was not written"],
])("prepack refuses a package that %s, and changes nothing", (_, files, pack, why) => {
  const home = packageWith(files, pack);
  const before = readdirSync(home, { recursive: true, encoding: "utf8" }).toSorted();
  const { status, printed } = prepack(home);
  expect(printed).toContain(why);
  expect(status).toBe(1);
  expect(readdirSync(home, { recursive: true, encoding: "utf8" }).toSorted()).toEqual(before);
});

it("prepack puts the bundled files in place, and restore puts the compiled ones back", () => {
  const home = packageWith(COMPILED, 'writeFileSync(target + "/dist/index.js", "export const a=1;");');
  expect(prepack(home)).toEqual({ status: 0, printed: "" });
  expect(readFileSync(join(home, "dist/index.js"), "utf8")).toBe("export const a=1;");
  expect(prepack(home, "restore").status).toBe(0);
  expect(readFileSync(join(home, "dist/index.js"), "utf8")).toBe(COMPILED["dist/index.js"]);
  expect(existsSync(join(home, ".cache-pack-aside"))).toBe(false);
});
