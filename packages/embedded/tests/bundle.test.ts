/** A bundled program takes a lock, provided that the interpreter stays outside of the bundle. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execPath } from "node:process";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { expect, onTestFinished, test } from "vitest";

const built = (name: string): string =>
  JSON.stringify(fileURLToPath(new URL(`../../${name}/dist/index.js`, import.meta.url)));

/** The folder of the package that is found from here. */
function packageOf(name: string): string {
  const main = createRequire(import.meta.url).resolve(name);
  return main.slice(0, main.lastIndexOf(`/node_modules/${name}/`) + `/node_modules/${name}`.length);
}

test.each([
  ["esm", "mjs"],
  ["cjs", "cjs"],
] as const)("a program bundled as %s runs with wasmoon installed next to it", async (format, ending) => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bundle-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(
    join(folder, "program.mjs"),
    `import { createHoldfast } from ${built("holdfast")};
     import { embedded } from ${built("embedded")};
     const holdfast = createHoldfast({ store: embedded() });
     holdfast.mutex("a").run(() => console.log("locked")).then(() => holdfast.close());`,
  );
  const bundle = await rolldown({ input: join(folder, "program.mjs"), platform: "node", external: ["wasmoon"] });
  const file = join(folder, "out", `bundle.${ending}`);
  await bundle.write({ file, format, codeSplitting: false });
  await bundle.close();
  const installed = join(folder, "out/node_modules/wasmoon");
  mkdirSync(dirname(installed), { recursive: true });
  symlinkSync(packageOf("wasmoon"), installed);
  expect(execFileSync(execPath, [file], { encoding: "utf8" })).toBe("locked\n");
});
