/** Redis goes down and comes back while a page stays open; the page must recover without input. */
import { expect, it } from "vitest";
import { redisScene } from "../tests/scene.js";
import { browserScene, picture, seriousFindings } from "./console/browser.js";
import { builtConsole, builtPages, enter } from "./console/built-console.js";

const redis = redisScene();
const browser = browserScene();
builtPages();

it("the page reports that Redis is down, and recovers without a reload and with the same filter", async () => {
  const holder = redis.another({ clientName: "down" });
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/locks?q=down");
  await page.locator("p.count", { hasText: "0 of 0 locks" }).waitFor();
  await page.evaluate("globalThis.isStillTheSame = true");

  await redis.server.kill();
  await page.getByRole("heading", { name: "The console cannot use Redis" }).waitFor();
  await picture(page, "down");
  expect(await seriousFindings(page)).toEqual([]);

  await redis.server.restart();
  await page.getByRole("heading", { name: "The console cannot use Redis" }).waitFor({ state: "detached" });
  await holder.mutex("down:1").acquire({ leaseMs: 600_000 });
  await page.getByRole("link", { name: "down:1" }).waitFor();
  expect(await page.getByLabel("Filter").inputValue()).toBe("down");
  expect(await page.evaluate("globalThis.isStillTheSame")).toBe(true);
  await picture(page, "healed");
});

it("the list keeps its scroll position while Redis is frozen", async () => {
  const holder = redis.another({ clientName: "still" });
  await Promise.all(
    Array.from({ length: 120 }, (_, i) => holder.mutex(`still:${1_000 + i}`).acquire({ leaseMs: 600_000 })),
  );
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/locks?q=still");
  await page.locator("p.count", { hasText: /^120 of \d+ locks$/ }).waitFor();
  await page.evaluate("scrollTo(0, 2000)");
  await page.getByRole("link", { name: "still:1050" }).waitFor();
  redis.server.freeze();
  try {
    await page.getByRole("heading", { name: "The console cannot use Redis" }).waitFor();
  } finally {
    redis.server.resume();
  }
  await page.getByRole("heading", { name: "The console cannot use Redis" }).waitFor({ state: "detached" });
  await expect.poll(() => page.evaluate<number>("scrollY"), { timeout: 20_000 }).toBe(2_000);
  await page.getByRole("link", { name: "still:1050" }).waitFor();
});
