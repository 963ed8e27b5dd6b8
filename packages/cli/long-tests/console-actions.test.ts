/** What changes while somebody looks, and what somebody changes: seen from the page and from the holder. */
import { randomUUID } from "node:crypto";
import { LeaseLostError } from "holdfast";
import { expect, it } from "vitest";
import { redisScene } from "../tests/console/scene.js";
import { browserScene, picture } from "./console/browser.js";
import { builtConsole, builtPages, enter } from "./console/built-console.js";

const redis = redisScene();
const browser = browserScene();
builtPages();

const LEASE_MS = 300_000;

function lockHash(name: string): string {
  return `#/lock?kind=mutex&name=${encodeURIComponent(name)}`;
}

it("a lock that is taken stands in the list within a second", async () => {
  const console = await builtConsole(redis);
  const { page, trouble } = await browser.open(console.origin);
  await enter(page, console);
  await page.getByText("live", { exact: true }).waitFor();
  // A machine that is busy with something else says nothing about the console: of several, the quickest counts.
  let quickestMs = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 5 && quickestMs > 1_000; attempt += 1) {
    const name = `live:${randomUUID()}`;
    const row = page.getByRole("link", { name });
    const lease = await redis.another().mutex(name).acquire({ leaseMs: LEASE_MS });
    const takenAtMs = performance.now();
    await row.waitFor();
    quickestMs = Math.min(quickestMs, performance.now() - takenAtMs);
    await lease.release();
    await row.waitFor({ state: "detached" });
  }
  expect(quickestMs).toBeLessThan(1_000);
  expect(trouble).toEqual([]);
});

it("with the keyboard alone a lock is found, opened and released, and its holder hears it", async () => {
  const name = `key:${randomUUID()}`;
  const holder = await redis.another({ clientName: "holder" }).mutex(name).acquire({ leaseMs: LEASE_MS });
  const next = redis.another({ clientName: "next" }).mutex(name).acquire({ leaseMs: LEASE_MS, waitMs: LEASE_MS });
  const console = await builtConsole(redis, { allow: ["release"], env: "prod" });
  const { page, trouble } = await browser.open(console.origin);
  await enter(page, console);
  await page.getByRole("link", { name }).waitFor();

  await page.keyboard.press("/");
  await page.keyboard.type(name);
  await page.getByText(/^1 of \d+ locks$/).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.getByText("1 waiter", { exact: true }).waitFor();
  const focused = (): Promise<string> =>
    page.evaluate<string>(
      "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.name ?? document.activeElement?.textContent ?? ''",
    );
  for (let tabs = 0; tabs < 40 && !(await focused()).startsWith("Release the hold"); tabs += 1)
    await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Force release").waitFor();
  await dialog.getByText("This is prod").waitFor();
  const submit = dialog.getByRole("button", { name: "Release", exact: true });
  expect(await submit.isDisabled()).toBe(true);
  for (let tabs = 0; tabs < 10 && (await focused()) !== "reason"; tabs += 1) await page.keyboard.press("Tab");
  await page.keyboard.type("its host is gone");
  expect(await submit.isDisabled()).toBe(true);
  await page.keyboard.press("Tab");
  await page.keyboard.type(name);
  expect(await submit.isEnabled()).toBe(true);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });

  expect((await next).token).toBeGreaterThan(holder.token);
  await expect.poll(() => holder.signal.aborted, { timeout: 10_000 }).toBe(true);
  expect(holder.signal.reason).toBeInstanceOf(LeaseLostError);
  expect((holder.signal.reason as LeaseLostError).reason).toBe("force-released");
  await page.getByRole("row", { name: /next/ }).first().waitFor();
  expect(console.audit).toContainEqual(
    expect.objectContaining({ action: "release", name, reason: "its host is gone" }),
  );
  expect(trouble).toEqual([]);
  await (await next).release();
});

it("a page that is out of date releases nobody, shows who has it now, and then asks again", async () => {
  const name = `stale:${randomUUID()}`;
  const first = await redis.another({ clientName: "first" }).mutex(name).acquire({ leaseMs: LEASE_MS });
  const console = await builtConsole(redis, { allow: ["release"] });
  const { page } = await browser.open(console.origin);
  await enter(page, console, lockHash(name));
  await page.getByRole("button", { name: /^Release the hold/ }).click();
  await first.release();
  const second = await redis.another({ clientName: "second" }).mutex(name).acquire({ leaseMs: LEASE_MS });

  const dialog = page.getByRole("dialog");
  const release = async (): Promise<void> => {
    await dialog.getByLabel("Reason").fill("a test");
    await dialog.getByLabel(/^Type the name/).fill(name);
    await dialog.getByRole("button", { name: "Release", exact: true }).click();
  };
  await release();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByRole("definition").getByText(String(second.token)).waitFor();
  await picture(page, "stale");
  expect(await dialog.getByLabel(/^Type the name/).inputValue()).toBe("");
  await second.extend(LEASE_MS);
  expect(second.signal.aborted).toBe(false);

  await release();
  await dialog.waitFor({ state: "detached" });
  await expect.poll(() => second.signal.aborted, { timeout: 10_000 }).toBe(true);
});

it("a name is paused and resumed from its page", async () => {
  const name = `pause:${randomUUID()}`;
  const console = await builtConsole(redis, { allow: ["pause", "resume"] });
  const { page, trouble } = await browser.open(console.origin);
  await enter(page, console, lockHash(name));
  await page.getByRole("button", { name: "Pause …" }).click();
  await page.getByLabel("Reason").fill("db maintenance");
  await page.getByRole("dialog").getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("db maintenance").first().waitFor();
  await expect.poll(() => redis.holdfast.mutex(name).tryAcquire()).toBeNull();
  await page.getByRole("button", { name: "Resume …" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("done");
  await page.getByRole("dialog").getByRole("button", { name: "Resume", exact: true }).click();
  await page.getByRole("button", { name: "Pause …" }).waitFor();
  const lease = await redis.holdfast.mutex(name).tryAcquire();
  expect(lease).not.toBeNull();
  await lease?.release();
  expect(trouble).toEqual([]);
});

it("the row that has the focus stays where it is, whatever comes and goes", async () => {
  const prefix = `still:${randomUUID().slice(0, 8)}`;
  const client = redis.another();
  const before = await Promise.all(
    ["b", "d", "f"].map((end) => client.mutex(`${prefix}:${end}`).acquire({ leaseMs: LEASE_MS })),
  );
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin);
  await enter(page, console, `#/locks?q=${prefix}`);
  const middle = page.getByRole("link", { name: `${prefix}:d` });
  await middle.focus();
  const place = await middle.boundingBox();
  await before[0]?.release();
  await client.mutex(`${prefix}:a`).acquire({ leaseMs: LEASE_MS });
  await page.getByText("no longer in the list").waitFor();
  await page.getByText("1 more row since you entered the list").waitFor();
  expect(await middle.boundingBox()).toEqual(place);
  expect(await middle.evaluate((link) => link === link.ownerDocument.activeElement)).toBe(true);
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: `${prefix}:a` }).waitFor();
  await page.getByRole("link", { name: `${prefix}:b` }).waitFor({ state: "detached" });
});

it("stopped means that nothing moves, until it goes on", async () => {
  const name = `stop:${randomUUID()}`;
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin);
  await enter(page, console, `#/locks?q=${name}`);
  await page.getByText("live", { exact: true }).waitFor();
  await page.keyboard.press("p");
  await page.getByText("stopped", { exact: true }).waitFor();
  await redis.another().mutex(name).acquire({ leaseMs: LEASE_MS });
  // Another visitor sees it, so the console knows of it.
  const other = await browser.open(console.origin);
  await enter(other.page, console, `#/locks?q=${name}`);
  await other.page.getByRole("link", { name }).waitFor();
  expect(await page.getByRole("link", { name }).count()).toBe(0);
  await page.keyboard.press("p");
  await page.getByRole("link", { name }).waitFor();
});

it("where no stream gets through it asks, and says so", async () => {
  const name = `poll:${randomUUID()}`;
  const console = await builtConsole(redis);
  const { page } = await browser.open(console.origin);
  await page.route("**/api/events*", (route) => route.abort());
  await enter(page, console, `#/locks?q=${name}`);
  await page.getByText("polling", { exact: true }).waitFor();
  await picture(page, "polling");
  await redis.another().mutex(name).acquire({ leaseMs: LEASE_MS });
  await page.getByRole("link", { name }).waitFor();
});
