import { expect, it } from "vitest";
import { complaintsAbout, inOrder } from "../../scripts/release-checks.mjs";

const MANIFEST = {
  name: "@holdfast/a",
  version: "1.2.3",
  description: "A.",
  keywords: ["a"],
  license: "MIT",
  engines: { node: ">=20" },
  publishConfig: { access: "public" },
  main: "./dist/index.js",
  exports: { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" }, "./package.json": "./package.json" },
  peerDependencies: { holdfast: "1.2.3", ioredis: "*" },
};
const FILES: Readonly<Record<string, string>> = {
  "README.md": "# A",
  LICENSE: "MIT",
  "dist/index.js": "export {};",
  "dist/index.d.ts": "export {};",
};

function complaints(changes: object, files: Readonly<Record<string, string | undefined>> = {}): string[] {
  const all = { ...FILES, "package.json": JSON.stringify({ ...MANIFEST, ...changes }), ...files };
  const present = Object.entries(all).flatMap(([path, text]): [string, string][] =>
    text === undefined ? [] : [[path, text]],
  );
  return complaintsAbout(new Map(present), "1.2.3");
}

it("a package that may be published gets no complaint", () => {
  expect(complaints({})).toEqual([]);
});

it.each<[string, object, Readonly<Record<string, string | undefined>>, string]>([
  ["without a license", {}, { LICENSE: undefined }, "LICENSE is missing"],
  ["without keywords", { keywords: undefined }, {}, "package.json has no keywords"],
  ["with development dependencies", { devDependencies: {} }, {}, "package.json has devDependencies"],
  [
    "with a peer of another version",
    { peerDependencies: { holdfast: "*" } },
    {},
    "peerDependencies has holdfast *, not the version of this release, 1.2.3",
  ],
  ["with types that are missing", {}, { "dist/index.d.ts": undefined }, ". names ./dist/index.d.ts, which is missing"],
  ["with a command that is missing", { bin: { a: "dist/a.cjs" } }, {}, "dist/a.cjs is missing"],
  ["with build info", {}, { "dist/.tsbuildinfo": "{}" }, "dist/.tsbuildinfo does not belong into a package"],
  ["with a source", {}, { "src/index.ts": "" }, "src/index.ts does not belong into a package"],
  [
    "with the name of a map",
    {},
    { "dist/index.js": "export {};\n//# sourceMappingURL=index.js.map\n" },
    "dist/index.js names a source map, which is not published",
  ],
])("a package %s is refused", (_, changes, files, complaint) => {
  expect(complaints(changes, files)).toEqual([complaint]);
});

it("a package is published after those that it needs", () => {
  const one = (name: string, needs: object) => ({ manifest: { name, version: "1.0.0", ...needs } });
  const packages = [
    one("http", { dependencies: { recipes: "1.0.0" } }),
    one("recipes", { peerDependencies: { holdfast: "1.0.0" } }),
    one("holdfast", {}),
  ];
  expect(inOrder(packages).map(({ manifest }) => manifest.name)).toEqual(["holdfast", "recipes", "http"]);
});
