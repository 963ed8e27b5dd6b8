/** Searching more locks than the console follows. */
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { addLocks, addSemaphores } from "../tests/many-locks.js";
import { type Answer, type ConsoleScene, redisScene } from "../tests/scene.js";
import { browserScene } from "./console/browser.js";
import { builtConsole, builtPages, enter, filterBy } from "./console/built-console.js";

const redis = redisScene();
const semaphores = redisScene();
const crowded = redisScene();
const browser = browserScene();
builtPages();

/** The console follows 10,000 of them. */
const LOCKS = 13_000;

beforeAll(() => addLocks(redis, LOCKS, "many:"));

/** Names of locks that come after those that the page follows. */
async function lateNames({ get }: ConsoleScene): Promise<readonly string[]> {
  const rows: { readonly name: string }[] = [];
  let cursor = "";
  do {
    const answer: Answer = await get(`api/locks?limit=1000&cursor=${cursor}`);
    rows.push(...answer.json.rows);
    cursor = answer.json.nextCursor;
  } while (cursor !== null);
  // All of the same length, so that none is a part of another.
  const late = rows.slice(11_500).map(({ name }) => name);
  return late.filter((name) => name.length === "many:12345".length);
}

/** Records every count that the page shows, and every text in place of rows. */
async function watch(page: Page): Promise<void> {
  await page.evaluate(`
    globalThis.said = [];
    new MutationObserver(() => {
      for (const shown of document.querySelectorAll(".count, .empty"))
        if (shown.textContent !== globalThis.said.at(-1)) globalThis.said.push(shown.textContent);
    }).observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true });
  `);
}

it("a filter finds a lock among more than the page follows, and until then the page does not say that there is none", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const [name = ""] = await lateNames(console);
  const { page, trouble } = await browser.open(console.origin);
  await enter(page, console);
  await page.locator("p.count", { hasText: "10,000+ locks" }).waitFor();
  await watch(page);
  await filterBy(page, `name:${name}`);
  await page.locator("p.count", { hasText: "1 of 13,001 locks" }).waitFor();
  await page.getByRole("link", { name }).waitFor();
  const said = await page.evaluate<readonly string[]>("globalThis.said");
  expect(said.filter((text) => /^0|No locks/.test(text))).toEqual([]);
  expect(said.join("\n")).toContain("10,000 locks read so far");
  expect(trouble).toEqual([]);
});

it("a filter that no lock matches says so after all locks were read", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/locks?q=name:nowhere");
  await page.locator("p.count", { hasText: "0 of 13,001 locks" }).waitFor();
  await page.getByText("No locks match").waitFor();
});

it("a filter that very many locks match shows the first of them, and says that there are more", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/locks?q=name:many");
  await page.getByText("More locks match.").waitFor();
  await page.locator("p.count", { hasText: /10,\d{3}\+ of / }).waitFor();
});

it("a deadlock is found among more locks than the page follows", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const names = (await lateNames(console)).slice(-2);
  const held = await Promise.all(
    names.map(async (name) => {
      const [key = ""] = (await redis.server.command("KEYS", `*mutex:{${name}}`)) as string[];
      await redis.server.command("DEL", key);
      const holdfast = redis.another({ clientName: "crossed" });
      return { holdfast, lease: await holdfast.mutex(name).acquire({ leaseMs: 3_600_000 }) };
    }),
  );
  const over = new AbortController();
  const waits = Promise.allSettled(
    held.map(({ holdfast }, i) =>
      holdfast.mutex(names.at(1 - i) ?? "").acquire({ waitMs: Infinity, signal: over.signal }),
    ),
  );
  const { page } = await browser.open(console.origin);
  await enter(page, console);
  await page.locator("p.count", { hasText: "10,000+ locks" }).waitFor();
  await page.getByText("Possible deadlock").waitFor();
  over.abort();
  await waits;
  for (const { lease } of held) await lease.release();
});

it("the Semaphores page says that it has not read all, and leads to the filter that searches them", async () => {
  await addSemaphores(semaphores, 11_000);
  const console = await builtConsole(semaphores, { pollMs: 1_000 });
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/semaphores");
  await page.getByText(/^10,\d{3}\+ semaphores$/).waitFor();
  await page.getByRole("link", { name: "the locks" }).click();
  await page.getByText("More locks match.").waitFor();
});

it("the Once page does not say that there are no calls before it has read all keys", async () => {
  // One request looks at about 100,000 keys.
  const fill = "for n = 1, 250000 do redis.call('SET', 'other:' .. n, '') end";
  await crowded.server.command("EVAL", fill, 0);
  const console = await builtConsole(crowded, { pollMs: 1_000 });
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/once");
  await page.getByText("No calls among the keys read so far.").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText("No call is on record.").waitFor();
});
