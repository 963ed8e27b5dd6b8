/** The size of the files that a visitor loads before the first lock is shown. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { beforeAll, expect, it } from "vitest";
import { buildPages } from "../../scripts/build-pages.mjs";

const BUILT = fileURLToPath(new URL("../../dist/ui", import.meta.url));
const BUDGET_BYTES = 40_000;

beforeAll(async () => {
  await buildPages();
}, 60_000);

function files(): string[] {
  return readdirSync(BUILT, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

it("all pages together have at most 40 kB when compressed", () => {
  const bytes = files().reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
  expect(bytes).toBeGreaterThan(5_000);
  expect(bytes).toBeLessThanOrEqual(BUDGET_BYTES);
});

it("the page contains no inline script or style, and no address of another host", () => {
  const html = readFileSync(join(BUILT, "index.html"), "utf8");
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/);
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=/);
  for (const [, address] of html.matchAll(/(?:src|href)="([^"]*)"/g)) expect(address).toMatch(/^\.\//);
  for (const file of files().filter((name) => name.endsWith(".css")))
    expect(readFileSync(file, "utf8")).not.toMatch(/@import|url\(/);
});
