/**
 * Tests `holdfast console` as users install it from the tarball: bundled, with the pages in the package, in a browser.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { browserScene, picture } from "../../console/long-tests/console/browser.js";
import { builtPages } from "../../console/long-tests/console/built-console.js";
import { redisScene } from "../../console/tests/scene.js";
import { until } from "../../holdfast/src/testing/delays.js";
import { type Installed, install } from "../tests/support/installed.js";

const redis = redisScene();
const browser = browserScene();
builtPages();

const folder = mkdtempSync(join(tmpdir(), "holdfast-installed-"));
const running: ChildProcess[] = [];
let installed: Installed;
beforeAll(async () => {
  installed = await install(folder);
});
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

/** Starts the console, and reads the address that it prints. */
async function consoleOf(
  ...flags: readonly string[]
): Promise<{ child: ChildProcess; origin: string; address: string }> {
  const url = `redis://127.0.0.1:${redis.server.port}`;
  const words = ["console", "-r", url, "-p", "0", "--no-open", "--connect-timeout", "60s", ...flags];
  const child = spawn(process.execPath, [installed.command, ...words], {
    cwd: folder,
    env: { PATH: process.env.PATH },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.push(child);
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  await until(() => out.includes("\n") || child.exitCode !== null, "it prints its address");
  const [address = "", origin = ""] = /^(http:\/\/[^/]+)\/#token=\S+/.exec(out) ?? [];
  return { child, origin, address };
}

it("lists locks live, without requests to other hosts and without browser errors", async () => {
  const holder = redis.another({ clientName: "ci" });
  await holder.mutex("installed:first").acquire({ leaseMs: 600_000, label: "release 4.2" });
  const { child, origin, address } = await consoleOf("--poll", "250ms");
  const { page, trouble } = await browser.open(origin);
  await page.goto(address);
  await page.getByRole("link", { name: "installed:first" }).waitFor();

  const second = await holder.mutex("installed:second").acquire({ leaseMs: 600_000 });
  await page.getByRole("link", { name: "installed:second" }).waitFor();
  await picture(page, "installed");
  await second.release();
  await page.getByRole("link", { name: "installed:second" }).waitFor({ state: "detached" });

  await page.getByRole("link", { name: "installed:first" }).click();
  await page.getByText("release 4.2").first().waitFor();
  expect(trouble).toEqual([]);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
});

it("runs the doctor, which is a separate file of the bundle", async () => {
  const { origin, address } = await consoleOf();
  const { page, trouble } = await browser.open(origin);
  await page.goto(address);
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  await page.goto(`${origin}/#/redis`);
  await page.getByRole("button", { name: "Run the doctor" }).click();
  await page.getByText(/\d+ results ok/).waitFor();
  expect(trouble).toEqual([]);
});
