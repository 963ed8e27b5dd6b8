import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";

import { complaintsAbout, inOrder, missingAddresses, versionsApart } from "../../scripts/release-checks.mjs";
import { isPublished, lint, refusalsOfNpm, typesThatDoNotResolve } from "../../scripts/release-tools.mjs";

const MANIFEST = {
  name: "@holdfast/a",
  version: "1.2.3",
  description: "A.",
  keywords: ["a"],
  license: "MIT",
  engines: { node: ">=20" },
  publishConfig: { access: "public" },
  main: "./dist/index.js",
  types: "./dist/index.d.ts",
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
  ["without a README", {}, { "README.md": undefined }, "README.md is missing"],
  ["without main", { main: undefined }, {}, "package.json has no main"],
  ["without types for tools that do not read exports", { types: undefined }, {}, "package.json has no types"],
  ["without publishConfig", { publishConfig: undefined }, {}, "package.json has no publishConfig"],
  ["with an entry without types", { exports: { "./a": "./dist/index.js" } }, {}, "./a has no types"],
  [
    "with a file that is missing for one condition",
    { exports: { ".": { types: "./dist/index.d.ts", node: { import: "./dist/a.js" } } } },
    {},
    ". names ./dist/a.js, which is missing",
  ],
  ["with a man page that is missing", { man: "man/a.1" }, {}, "man/a.1 is missing"],
  ["with a map", {}, { "dist/index.js.map": "{}" }, "dist/index.js.map does not belong in a package"],
  [
    "with a dependency of another version",
    { dependencies: { "@holdfast/recipes": "^1.2.3" } },
    {},
    "dependencies has @holdfast/recipes ^1.2.3, not the version of this release, 1.2.3",
  ],
  ["without a license", {}, { LICENSE: undefined }, "LICENSE is missing"],
  ["without keywords", { keywords: undefined }, {}, "package.json has no keywords"],
  ["with development dependencies", { devDependencies: {} }, {}, "package.json has devDependencies"],
  [
    "with a peer of another version",
    { peerDependencies: { holdfast: "*" } },
    {},
    "peerDependencies has holdfast *, not the version of this release, 1.2.3",
  ],
  [
    "with types that are missing",
    { exports: { ".": { types: "./dist/a.d.ts", default: "./dist/index.js" } } },
    {},
    ". names ./dist/a.d.ts, which is missing",
  ],
  ["with a command that is missing", { bin: { a: "dist/a.cjs" } }, {}, "dist/a.cjs is missing"],
  ["with build info", {}, { "dist/.tsbuildinfo": "{}" }, "dist/.tsbuildinfo does not belong in a package"],
  ["with a source", {}, { "src/index.ts": "" }, "src/index.ts does not belong in a package"],
  [
    "with the name of a map",
    {},
    { "dist/index.js": "export {};\n//# sourceMappingURL=index.js.map\n" },
    "dist/index.js names a source map, which is not published",
  ],
])("a package %s is refused", (_, changes, files, complaint) => {
  expect(complaints(changes, files)).toEqual([complaint]);
});

it("a package is published after the packages that it needs", () => {
  const one = (name: string, needs: object) => ({ manifest: { name, version: "1.0.0", ...needs } });
  const packages = [
    one("http", { dependencies: { recipes: "1.0.0" } }),
    one("recipes", { peerDependencies: { holdfast: "1.0.0" } }),
    one("holdfast", {}),
  ];
  expect(inOrder(packages).map(({ manifest }) => manifest.name)).toEqual(["holdfast", "recipes", "http"]);
});

it("packages with different versions are not one release", () => {
  const a = { name: "a", version: "1.0.0" };
  expect(versionsApart([a, { name: "b", version: "1.0.0" }])).toEqual([]);
  expect(versionsApart([a, { name: "b", version: "1.1.0" }])).toEqual(["a has 1.0.0", "b has 1.1.0"]);
});

it("each missing public address is named", () => {
  const a = { name: "a", version: "1.0.0", repository: "r", homepage: "h", bugs: "b" };
  expect(missingAddresses([a])).toEqual([]);
  expect(missingAddresses([a, { ...a, name: "b", homepage: undefined, bugs: undefined }])).toEqual([
    "b has no homepage, no bugs",
  ]);
});

/** The folder of a packed package. */
function packed(changes: object, files: Readonly<Record<string, string>> = {}): string {
  const work = mkdtempSync(join(tmpdir(), "holdfast-release-test-"));
  onTestFinished(() => {
    rmSync(work, { recursive: true, force: true });
  });
  const folder = join(work, "package");
  const manifest = { ...MANIFEST, type: "module", files: ["dist"], ...changes };
  for (const [path, text] of Object.entries({ ...FILES, "package.json": JSON.stringify(manifest), ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

it("publint refuses a package whose entry has the wrong module format", async () => {
  expect(await lint(packed({}))).toEqual([]);
  const complaints = await lint(packed({}, { "dist/index.js": "module.exports = {};" }));
  expect(complaints.join()).toContain("CJS");
});

it("attw refuses a package whose types do not resolve", () => {
  const tarball = (folder: string) => {
    execFileSync("tar", ["-czf", `${folder}.tgz`, "-C", dirname(folder), "package"]);
    return `${folder}.tgz`;
  };
  expect(typesThatDoNotResolve(tarball(packed({})))).toEqual([]);
  const types = 'export { a } from "./missing.js";';
  const complaints = typesThatDoNotResolve(tarball(packed({}, { "dist/index.d.ts": types })));
  expect(complaints.join()).toContain("Internal resolution error");
}, 60_000);

it("npm refuses an invalid version and a field that it would change", () => {
  expect(refusalsOfNpm(packed({}))).toEqual([]);
  expect(refusalsOfNpm(packed({ version: "1" })).join()).toContain("Invalid version");
  expect(refusalsOfNpm(packed({ bin: { a: "./dist/index.js" } })).join()).toContain("script name");
}, 60_000);

it("only what the registry does not have is published", async () => {
  const server = createServer(({ url }, response) => {
    if (url?.startsWith("/broken") === true) response.writeHead(403).end("{}");
    else if (url?.startsWith("/there") !== true) response.writeHead(404).end("{}");
    else {
      const versions = { "1.0.0": { name: "there", version: "1.0.0" } };
      response.end(JSON.stringify({ name: "there", "dist-tags": { latest: "1.0.0" }, versions }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    vi.unstubAllEnvs();
  });
  vi.stubEnv("npm_config_registry", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await isPublished({ name: "there", version: "1.0.0" })).toBe(true);
  expect(await isPublished({ name: "there", version: "1.1.0" })).toBe(false);
  expect(await isPublished({ name: "missing", version: "1.0.0" })).toBe(false);
  await expect(isPublished({ name: "broken", version: "1.0.0" })).rejects.toThrow("npm view broken@1.0.0");
}, 60_000);
