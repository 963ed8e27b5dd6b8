/** Searching more locks than the console follows. */
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { addLocks } from "../tests/many-locks.js";
import { type Answer, type ConsoleScene, redisScene } from "../tests/scene.js";
import { browserScene } from "./console/browser.js";
import { builtConsole, builtPages, enter, filterBy } from "./console/built-console.js";

const redis = redisScene();
const browser = browserScene();
builtPages();

/** The console follows 10,000 of them. */
const LOCKS = 22_000;

beforeAll(() => addLocks(redis, LOCKS, "many:"));

/** Names from the last page, which the console reads last. */
async function lastNames({ get }: ConsoleScene): Promise<readonly string[]> {
  let answer: Answer;
  let cursor = "";
  do {
    answer = await get(`api/locks?limit=1000&cursor=${cursor}`);
    cursor = answer.json.nextCursor;
  } while (cursor !== null);
  const rows: readonly { readonly name: string }[] = answer.json.rows;
  // All of the same length, so that none is a part of another.
  return rows.map(({ name }) => name).filter((name) => name.length === "many:12345".length);
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
  const [name = ""] = await lastNames(console);
  const { page, trouble } = await browser.open(console.origin);
  await enter(page, console);
  await page.getByText("10\u202f000+ locks").waitFor();
  await watch(page);
  await filterBy(page, `name:${name}`);
  await page.getByText("1 of 22\u202f001 locks").waitFor();
  await page.getByRole("link", { name }).waitFor();
  const said = await page.evaluate<readonly string[]>("globalThis.said");
  expect(said.filter((text) => /^0|No locks/.test(text))).toEqual([]);
  expect(said.join("\n")).toContain("10\u202f000 locks read so far");
  expect(trouble).toEqual([]);
});

it("a filter that no lock matches says so after all locks were read", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/locks?q=name:nowhere");
  await page.getByText("0 of 22\u202f001 locks").waitFor();
  await page.getByText("No locks match").waitFor();
});

it("a filter that very many locks match shows the first of them, and says that there are more", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/locks?q=name:many");
  await page.getByText("More locks match.").waitFor();
  await page.getByText(/10\u202f\d{3}\+ of /).waitFor();
});

it("a deadlock is found among more locks than the page follows", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const names = (await lastNames(console)).slice(-2);
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
  await page.getByText("10\u202f000+ locks").waitFor();
  await page.getByText("Possible deadlock").waitFor();
  over.abort();
  await waits;
  for (const { lease } of held) await lease.release();
});
