/**
 * Loads a newly started console in a real browser. Measures the time from opening its address to the first lock on the page
 * and to the whole list, and then from opening the address of its Clients page to the first client.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createHoldfast } from "holdfast";
import type { Browser } from "playwright-core";
import { target } from "../results.js";
import type { Server } from "../server.js";
import type { Entry, Prepared } from "./entry.js";
import type { Measurement } from "./measurement.js";
import { packedCommand } from "./startup.js";

const COUNTS = [5_000, 50_000];
const LEASE_MS = 3_600_000;
const AT_ONCE = 1_000;
const MOST_MS = 2_000;
const TOKEN = "only-for-this-benchmark";
const SETUP = new URL("../../../scripts/setup.mjs", import.meta.url).href;

/** Records when the first row appeared, and when the page showed that it is live. */
const WATCH = `
  new MutationObserver(() => {
    const now = performance.now();
    if (document.querySelector("main tr[data-index]") !== null) globalThis.firstMs ??= now;
    if (document.querySelector('button[class="live live"]') !== null) globalThis.liveMs ??= now;
  }).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });`;

export const consolePage: Measurement = {
  name: "console",
  title: () => "first page of the console in Chromium, from entering its address",
  seconds: 0,
  servers: COUNTS.length,
  figures: [
    { name: "first lock", unit: "ms", digits: 0, better: "less" },
    { name: "all that it shows", unit: "ms", digits: 0, better: "less" },
    { name: "first client", unit: "ms", digits: 0, better: "less" },
  ],

  entries: () => COUNTS.map(entryOf),

  targets: (results) =>
    COUNTS.map((count) =>
      target(
        `first page of the console, ${nameOf(count)}`,
        results.median(nameOf(count), "first lock"),
        { atMost: MOST_MS },
        "ms",
        0,
      ),
    ),
};

function nameOf(count: number): string {
  return `${count.toLocaleString("en-US")} locks`;
}

function entryOf(count: number, index: number): Entry {
  return { name: nameOf(count), role: "own", prepare: ({ servers }) => prepare(count, servers[index]) };
}

async function prepare(count: number, server: Server | undefined): Promise<Prepared> {
  if (server === undefined) throw new Error("it needs a server");
  const { onPath } = (await import(SETUP)) as { onPath(program: string): string | undefined };
  const executablePath = process.env.HOLDFAST_CHROMIUM ?? onPath("chromium");
  if (executablePath === undefined) throw new Error("chromium is missing: apt-get install chromium");
  await fill(server, count);
  const { main, remove } = await packedCommand();
  // Imported here, because it is slow to load and no other measurement needs it.
  const { chromium } = await import("playwright-core");
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--headless"] });
  const run = async (): Promise<readonly number[]> => {
    const { child, origin } = await startConsole(main, server.port);
    try {
      return await open(browser, origin);
    } finally {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
  };
  await run();
  return {
    run: async () => ({ values: await run() }),
    async close() {
      await browser.close();
      remove();
    },
  };
}

/** Writes `count` locks directly, in the form in which acquires would leave them but in a fraction of the time. */
async function fill({ control }: Server, count: number): Promise<void> {
  const holdfast = createHoldfast({ redis: control });
  const { owner } = await holdfast.mutex("many:first").acquire({ leaseMs: LEASE_MS });
  const [key = ""] = await control.keys("*{many:first}");
  for (let from = 1; from < count; from += AT_ONCE) {
    const pipeline = control.pipeline();
    for (let n = from; n < Math.min(from + AT_ONCE, count); n += 1)
      pipeline.set(key.replace("first", String(n).padStart(5, "0")), owner, "PX", LEASE_MS);
    await pipeline.exec();
  }
  await holdfast.close();
}

async function startConsole(
  main: string,
  port: number,
): Promise<{ readonly child: ChildProcess; readonly origin: string }> {
  const words = [main, "console", "-r", `redis://127.0.0.1:${port}`, "-p", "0", "--no-open", "--token", TOKEN];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "ignore"] });
  let origin: string | undefined;
  for await (const text of child.stdout.setEncoding("utf8")) {
    origin = /^(http:\/\/[^/]+)\//.exec(String(text))?.[1];
    break;
  }
  if (origin === undefined) throw new Error("the console did not start");
  return { child, origin };
}

async function open(browser: Browser, origin: string): Promise<readonly number[]> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.addInitScript(WATCH);
    const row = page.locator("main tr[data-index]").first();
    await page.goto(`${origin}/#token=${TOKEN}`);
    await row.waitFor();
    await page.locator('button[class="live live"]').waitFor();
    const locks = await page.evaluate<readonly number[]>("[globalThis.firstMs, globalThis.liveMs]");
    // Via another document, because a change of the fragment alone does not reload the page.
    await page.goto("about:blank");
    await page.goto(`${origin}/#/clients`);
    await row.waitFor();
    return [...locks, await page.evaluate<number>("globalThis.firstMs")];
  } finally {
    await context.close();
  }
}
