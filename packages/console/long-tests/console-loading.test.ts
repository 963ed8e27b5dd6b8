/**
 * How pages load when there are many locks: a page must not show "none" or 0 before it has data. Prints how long the
 * first rows take.
 */
import { once } from "@holdfast/recipes";
import { appendHistory } from "holdfast/admin";
import { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
import { redisScene } from "../tests/scene.js";
import { browserScene } from "./console/browser.js";
import { builtConsole, builtPages, enter } from "./console/built-console.js";

const browser = browserScene();
builtPages();

const LEASE_MS = 3_600_000;
const PAGES = ["locks", "clients", "semaphores", "elections", "once", "history"];

/** Records what the page shows before its first row, and when that row appears. */
const WATCH = `
  globalThis.seen = new Set();
  new MutationObserver(() => {
    if (globalThis.firstRowMs !== undefined) return;
    if (document.querySelector("main tr[data-index]") !== null) globalThis.firstRowMs = Math.round(performance.now());
    else globalThis.seen.add(document.querySelector("main")?.innerText ?? "");
  }).observe(document, { subtree: true, childList: true, characterData: true });`;

describe.each([5_000, 50_000])("with %i locks", (locks) => {
  const redis = redisScene();

  beforeAll(async () => {
    const { holdfast, server } = redis;
    const { owner } = await holdfast.mutex("many:first").acquire({ leaseMs: LEASE_MS });
    await holdfast.semaphore("pool", { permits: 2 }).acquire({ leaseMs: LEASE_MS });
    await holdfast.election("feed").campaign("here", { leaseMs: LEASE_MS });
    await once(holdfast, "charge:7", () => 1);
    await appendHistory(holdfast, { what: "skipped", kind: "mutex", name: "nightly", reason: "held elsewhere" });
    // Writes the keys directly because acquiring this many locks would take far longer.
    const client = new Redis({ port: server.port });
    const [key = ""] = await client.keys("*{many:first}");
    for (let from = 1; from < locks; from += 1_000) {
      const pipeline = client.pipeline();
      for (let n = from; n < Math.min(from + 1_000, locks); n += 1)
        pipeline.set(key.replace("first", String(n).padStart(5, "0")), owner, "PX", LEASE_MS);
      await pipeline.exec();
    }
    client.disconnect();
  });

  it("no page shows 0 or none while it loads", async () => {
    const console = await builtConsole(redis, { pollMs: 1_000 });
    const { page, trouble } = await browser.open(console.origin);
    await enter(page, console, "#/redis");
    await page.addInitScript(WATCH);
    for (const name of PAGES) {
      await page.goto("about:blank");
      await page.goto(`${console.origin}/#/${name}`);
      await page.locator("main tr[data-index]").first().waitFor();
      const firstRowMs = await page.evaluate<number>("globalThis.firstRowMs");
      globalThis.console.log(`${locks} locks, ${name}: first row after ${firstRowMs} ms`);
      const seen = await page.evaluate<string[]>("[...globalThis.seen]");
      const numbers = seen.filter((text) => /\b0\b|\bno\b|nothing|nobody/i.test(text));
      expect(numbers, name).toEqual([]);
    }
    // The check ignores `about:blank`, which counts as a foreign address.
    expect(trouble.filter((line) => !line.includes("about:blank"))).toEqual([]);
  });
});

describe("the Redis page", () => {
  const redis = redisScene();

  it("does not say that the doctor has not run until that is known", async () => {
    const console = await builtConsole(redis, { examine: () => Promise.resolve([]) });
    const { page } = await browser.open(console.origin);
    await enter(page, console, "#/redis");
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/api/doctor", async (request) => {
      await held;
      await request.continue();
    });
    await page.goto("about:blank");
    await page.goto(`${console.origin}/#/redis`);
    await page.getByText("Reading the doctor's last findings …").waitFor();
    expect(await page.getByText("Not run since").count()).toBe(0);
    release();
    await page.getByText("Not run since the console started.").waitFor();
  });

  it("says so if the visitor may not see the doctor's findings", async () => {
    const console = await builtConsole(redis, { examine: () => Promise.resolve([]) });
    const { page } = await browser.open(console.origin);
    await page.route("**/api/doctor", (request) =>
      request.fulfill({ status: 403, contentType: "application/problem+json", body: '{"status":403}' }),
    );
    await enter(page, console, "#/redis");
    await page.getByText("You may not see the doctor's findings.").waitFor();
    expect(await page.getByRole("button", { name: "Run the doctor" }).count()).toBe(0);
  });

  it("does not show a count of 0 servers if it was mounted without servers", async () => {
    const console = await builtConsole(redis, { servers: null });
    const { page } = await browser.open(console.origin);
    await enter(page, console, "#/redis");
    await page.getByText("mounted without").waitFor();
    await page.getByRole("heading", { name: "Servers", exact: true }).waitFor();
    expect(await page.getByText("0 servers").count()).toBe(0);
  });
});
