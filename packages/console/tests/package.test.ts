/** The published package: the console and its pages. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pack } from "../../../scripts/pack.mjs";
import type * as published from "../src/index.js";

const home = fileURLToPath(new URL("..", import.meta.url));
const packed = mkdtempSync(join(home, ".cache-pack-"));

beforeAll(() => pack(home, packed));
afterAll(() => rmSync(packed, { recursive: true }));

test("the packed console serves its page and the files that the page loads", async () => {
  const { createConsole } = (await import(pathToFileURL(join(packed, "dist/index.js")).href)) as typeof published;
  const holdfast = createHoldfast({ store: embedded() });
  const handler = createConsole({ holdfast, authorize: () => ({ by: "test", may: "view" }) as never });
  const server = createServer(handler).listen(0, "127.0.0.1");
  try {
    await new Promise((resolve) => server.once("listening", resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const page = await (await fetch(origin)).text();
    expect(page).toContain("<!doctype html>");
    const [, script = "none"] = /src="\.\/(assets\/[^"]+\.js)"/.exec(page) ?? [];
    expect((await fetch(new URL(script, origin))).status).toBe(200);
  } finally {
    await handler.close();
    server.close();
    await holdfast.close();
  }
});
