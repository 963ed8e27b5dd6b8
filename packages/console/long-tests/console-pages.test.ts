/** Every page in both themes, wide and narrow: its content, its layout and its accessibility. */

import { once } from "@holdfast/recipes";
import type { Lease } from "holdfast";
import { appendHistory } from "holdfast/admin";
import { beforeAll, describe, expect, it } from "vitest";
import { plain } from "../src/plain.js";
import { redisScene, TOKEN } from "../tests/scene.js";
import { browserScene, expectNoSidewaysScroll, picture, seriousFindings } from "./console/browser.js";
import { builtConsole, builtPages, enter, filterBy } from "./console/built-console.js";

const redis = redisScene();
const browser = browserScene();
builtPages();

const SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>";
const RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd:\u05e2\u05d5\u05dc\u05dd\u202eabc";
const LONGEST = "\u00fc".repeat(256);
const LEASE_MS = 300_000;

beforeAll(async () => {
  const { holdfast } = redis;
  const ci = redis.another({ clientName: "ci" });
  const api = redis.another({ clientName: "api" });
  const held: Lease[] = [];
  const hold = async (name: string, label?: string): Promise<void> => {
    held.push(await ci.mutex(name).acquire({ leaseMs: LEASE_MS, ...(label === undefined ? {} : { label }) }));
  };
  await hold("deploy:prod", "release 4.2");
  for (const name of [SCRIPT, RIGHT_TO_LEFT, LONGEST, "catalog:rebuild", "invoice:2026-11:close"])
    await hold(name, name.slice(0, 40));
  for (let waiter = 1; waiter <= 40; waiter += 1)
    api
      .mutex("deploy:prod")
      .acquire({ waitMs: LEASE_MS, label: `batch ${waiter}` })
      .then(
        (lease) => lease.release(),
        () => {},
      );
  for (let permit = 0; permit < 3; permit += 1)
    await api.semaphore("pool:pdf", { permits: 5 }).acquire({ leaseMs: LEASE_MS });
  await ci.readWriteLock("catalog").read.acquire({ leaseMs: LEASE_MS });
  await api.election("scheduler").campaign("http://10.0.0.7:8080", { leaseMs: LEASE_MS });
  api
    .readWriteLock("catalog")
    .write.acquire({ waitMs: LEASE_MS })
    .then(
      (lease) => lease.release(),
      () => {},
    );
  await holdfast.pause("nightly", { by: "ana@ops-1", label: "db maintenance" });
  for (const charge of ["7001", "7002", "7003"]) await once(api, `charge:${charge}`, () => 1, { scope: "shop-4" });
  await once(api, "transfer:88", () => Promise.reject(new Error("no answer")), { after: () => "block" }).catch(
    () => {},
  );
  for (let run = 1; run <= 12; run += 1)
    await appendHistory(holdfast, {
      what: run % 5 === 0 ? "forced" : "released",
      kind: "mutex",
      name: "deploy:prod",
      owner: `ReH8GUZ6AOmR69do/${run}/30000/1`,
      token: (Date.now() - run * 600_000 - 120_000) * 1_000,
      heldMs: 120_000,
      waitedMs: run * 40,
      agoMs: run * 600_000,
      ...(run % 5 === 0 ? { reason: "host ci-7 is gone", by: "ana" } : {}),
    });
});

/** Each page, with a text that is present once the page is drawn. */
const PAGES: Readonly<Record<string, readonly [hash: string, text: string]>> = {
  locks: ["#/locks", "deploy:prod"],
  lock: ["#/lock?kind=mutex&name=deploy%3Aprod", "40 waiters"],
  paused: ["#/lock?kind=mutex&name=nightly", "db maintenance"],
  clients: ["#/clients", "ci"],
  semaphores: ["#/semaphores", "pool:pdf"],
  elections: ["#/elections", "scheduler"],
  once: ["#/once", "transfer:88"],
  history: ["#/history", "released"],
  redis: ["#/redis", "Round trip"],
};

describe.each(["light", "dark"] as const)("in the %s theme", (theme) => {
  it.each([1_600, 1_280, 390, 360])(
    "every page fits, and has no serious accessibility problem, at %i px",
    async (width) => {
      const console = await builtConsole(redis, {
        env: "prod",
        allow: ["release", "pause", "resume", "resize", "resign", "resolve"],
      });
      const { page, trouble } = await browser.open(console.origin, { width, theme });
      await enter(page, console);
      for (const [name, [hash, text]] of Object.entries(PAGES)) {
        await page.goto(`${console.origin}/${hash}`);
        await page.getByRole("main").getByText(text).and(page.locator(":visible")).first().waitFor();
        await picture(page, `${name}-${theme}-${width}`);
        expect(await seriousFindings(page), name).toEqual([]);
        await expectNoSidewaysScroll(page);
      }
      expect(trouble).toEqual([]);
    },
  );

  it("the sign-in page, the dialogs and the empty list have no serious accessibility problem", async () => {
    const console = await builtConsole(redis, { env: "prod", allow: ["release"] });
    const { page, trouble } = await browser.open(console.origin, { theme });
    await page.goto(console.origin);
    await page.getByLabel("Token").waitFor();
    await picture(page, `sign-in-${theme}`);
    expect(await seriousFindings(page), "sign-in").toEqual([]);
    await enter(page, console, "#/locks?q=name%3Anobody");
    await page.getByText("No locks match").waitFor();
    await page.getByRole("button", { name: /^\d+ held$/ }).click();
    await page.getByRole("link", { name: "deploy:prod" }).waitFor();
    await picture(page, `empty-${theme}`);
    expect(await seriousFindings(page), "empty").toEqual([]);
    await page.goto(`${console.origin}/#/lock?kind=mutex&name=deploy%3Aprod`);
    await page.getByText(/^holdfast release deploy:prod --token \d+ -m 'WHY'$/).waitFor();
    await page.getByRole("button", { name: /^Release the hold/ }).click();
    await page.getByRole("dialog").getByText("Force release").waitFor();
    await picture(page, `release-${theme}`);
    expect(await seriousFindings(page), "release").toEqual([]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Next row").waitFor();
    await picture(page, `help-${theme}`);
    expect(await seriousFindings(page), "help").toEqual([]);
    expect(trouble).toEqual([]);
  });
});

it("History shows 100 events at first, and 100 more with each press, also on a phone", async () => {
  const { holdfast } = redis;
  for (let run = 1; run <= 250; run += 1)
    await appendHistory(holdfast, { what: "skipped", kind: "mutex", name: "paged", reason: `run ${run}`, agoMs: run });
  const console = await builtConsole(redis);
  const { page, trouble } = await browser.open(console.origin, { width: 390 });
  await enter(page, console, "#/history?name=paged");
  const table = page.locator("table.data");
  const more = page.getByRole("button", { name: "Show 100 more" });
  for (const lines of [100, 200]) {
    await page.getByText(`The latest ${lines} are shown.`).waitFor();
    // The count includes the header row.
    expect(await table.getAttribute("aria-rowcount")).toBe(String(lines + 1));
    await more.click();
  }
  await more.waitFor({ state: "detached" });
  expect(await table.getAttribute("aria-rowcount")).toBe("251");
  await page.getByText("250 events", { exact: true }).waitFor();
  await expectNoSidewaysScroll(page);
  expect(trouble).toEqual([]);
});

it("a name is shown as text, whatever it contains", async () => {
  const console = await builtConsole(redis);
  const { page, trouble } = await browser.open(console.origin);
  await enter(page, console);
  for (const name of [SCRIPT, RIGHT_TO_LEFT, LONGEST]) {
    await page.goto(`${console.origin}/#/locks`);
    const row = page.getByRole("link", { name: plain(name) });
    await row.click();
    await page.getByRole("heading", { level: 1, name: plain(name) }).waitFor();
    await page.getByText("1 holder").waitFor();
    await expectNoSidewaysScroll(page);
  }
  expect(await page.locator("main script, main img").count()).toBe(0);
  expect(trouble).toEqual([]);
});

it("a read-only console offers no actions", async () => {
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/lock?kind=mutex&name=deploy%3Aprod");
  await page.getByText("40 waiters").waitFor();
  expect(await page.getByRole("button", { name: /release|pause|resume/i }).count()).toBe(0);
  await page.getByText("read-only").waitFor();
});

it("the token in the address signs in and is removed from the address", async () => {
  const console = await builtConsole(redis);
  const { page, trouble } = await browser.open(console.origin);
  await page.goto(`${console.origin}/#token=${TOKEN}`);
  await page.getByRole("link", { name: /deploy:prod/ }).waitFor();
  expect(page.url()).not.toContain(TOKEN);
  await page.reload();
  await page.getByRole("link", { name: /deploy:prod/ }).waitFor();
  expect(trouble).toEqual([]);
});

it("a wrong token shows an error, and the right one then signs in", async () => {
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin);
  await page.goto(`${console.origin}/#token=not-the-right-one-at-all`);
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByLabel("Your name").fill("ana");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: /deploy:prod/ }).waitFor();
});

it("the address contains filter and sort, and restores them", async () => {
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin);
  await enter(page, console);
  await filterBy(page, "kind:mutex waiting");
  await page.locator("p.count", { hasText: /^1 of \d+ locks$/ }).waitFor();
  await page.getByRole("button", { name: "Waiters" }).click();
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await page.locator("p.count", { hasText: /^1 of \d+ locks$/ }).waitFor();
  expect(await page.getByRole("columnheader", { name: "Waiters" }).getAttribute("aria-sort")).toBe("ascending");
  expect(await page.getByLabel("Filter").inputValue()).toBe("kind:mutex waiting");
});

it("the chosen theme is stored, and applied before the first paint", async () => {
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin, { theme: "light" });
  await enter(page, console);
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByLabel("Theme").selectOption("dark");
  await page.reload({ waitUntil: "commit" });
  await page.waitForFunction("document.documentElement.dataset.theme === 'dark'");
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  expect(await page.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgb(15, 18, 22)");
});
