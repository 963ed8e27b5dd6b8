/** A list of ten thousand locks. */
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { redisScene } from "../tests/scene.js";
import { browserScene, picture } from "./console/browser.js";
import { builtConsole, builtPages, enter, filterBy } from "./console/built-console.js";

const redis = redisScene();
const browser = browserScene();
builtPages();

const LOCKS = 10_000;
/** The most rows in the document, including those kept ready above and below the visible area. */
const ROWS_AT_MOST = 80;
const ELEMENTS_AT_MOST = 3_000;

beforeAll(async () => {
  const holder = redis.another({ clientName: "many" });
  for (let from = 0; from < LOCKS; from += 500)
    await Promise.all(
      Array.from({ length: 500 }, (_, i) =>
        holder.mutex(`many:${String(from + i).padStart(5, "0")}`).acquire({ leaseMs: 3_600_000 }),
      ),
    );
});

interface Scrolled {
  readonly frames: number;
  /** Frames in which the visible area contained no row. */
  readonly holes: number;
  /** The highest number of rows in the document at any time. */
  readonly rows: number;
  readonly elements: number;
  readonly medianMs: number;
}

/** Scrolls down from the top, three rows per frame. */
function scroll(page: Page): Promise<Scrolled> {
  return page.evaluate<Scrolled>(`(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const result = { frames: 0, holes: 0, rows: 0, elements: 0 };
    const tookMs = [];
    scrollTo(0, 0);
    await frame();
    let before = performance.now();
    for (let step = 1; step <= 100; step += 1) {
      scrollTo(0, step * 120);
      await frame();
      tookMs.push(performance.now() - before);
      before = performance.now();
      const row = document.elementFromPoint(innerWidth / 2, innerHeight / 2)?.closest("tr[data-index]");
      if (row === null || row === undefined) result.holes += 1;
      result.frames += 1;
      result.rows = Math.max(result.rows, document.querySelectorAll("tr[data-index]").length);
      result.elements = Math.max(result.elements, document.querySelectorAll("*").length);
    }
    return { ...result, medianMs: tookMs.sort((a, b) => a - b)[50] };
  })()`);
}

it("ten thousand locks scroll like one thousand: with a few hundred elements, and with rows in almost every frame", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const { page, trouble } = await browser.open(console.origin);
  await enter(page, console, "#/locks?q=name:many:00");
  await page.locator("p.count", { hasText: "1,000 of 10,000 locks" }).waitFor();
  const few = await scroll(page);
  await page.goto(`${console.origin}/#/locks`);
  await page.locator("p.count", { hasText: /^10,000 locks$/ }).waitFor();
  const many = await scroll(page);
  globalThis.console.log(`1 000: ${JSON.stringify(few)}, 10 000: ${JSON.stringify(many)}`);
  expect(many.rows).toBeLessThanOrEqual(ROWS_AT_MOST);
  expect(many.elements).toBeLessThanOrEqual(ELEMENTS_AT_MOST);
  // After a fast step, the rows may be a frame late. If the list itself is slow, there are holes all the way.
  expect(many.holes).toBeLessThanOrEqual(many.frames / 20);
  // Compares two lists on the same machine because frame times depend mostly on the machine.
  expect(many.medianMs).toBeLessThan(3 * few.medianMs + 20);
  await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
  await page.getByRole("link", { name: "many:09999" }).waitFor();
  await picture(page, "many");
  expect(trouble).toEqual([]);
});

it("typing filters ten thousand locks, and the keys move through the result", async () => {
  const console = await builtConsole(redis, { pollMs: 1_000 });
  const { page } = await browser.open(console.origin);
  await enter(page, console);
  await page.locator("p.count", { hasText: "10,000 locks" }).waitFor();
  await filterBy(page, "many:077");
  await page.locator("p.count", { hasText: "100 of 10,000 locks" }).waitFor();
  await page.keyboard.press("Escape");
  for (let step = 0; step < 60; step += 1) await page.keyboard.press("j");
  const focused = page.locator("a:focus");
  expect(await focused.textContent()).toContain("many:07759");
  const box = await focused.boundingBox();
  expect(box?.y).toBeGreaterThan(0);
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(800);
});
