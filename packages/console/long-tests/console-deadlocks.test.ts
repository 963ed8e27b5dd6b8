/** The section of the Locks page that lists possible deadlocks. */
import { hostname } from "node:os";
import { pid } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { redisScene } from "../tests/scene.js";
import { browserScene, seriousFindings } from "./console/browser.js";
import { builtConsole, builtPages, enter } from "./console/built-console.js";

const redis = redisScene();
const browser = browserScene();
builtPages();

const LEASE_MS = 600_000;

it("a deadlock of two clients shows both, their labels, how long it has lasted, and what to release", async () => {
  const [ci, api] = [redis.another({ clientName: "ci" }), redis.another({ clientName: "api" })];
  const orders = await ci.mutex("orders").acquire({ leaseMs: LEASE_MS, label: "nightly export" });
  // The page suggests the hold that began last, and times have a resolution of 1 ms.
  await sleep(20);
  const stock = await api.mutex("stock").acquire({ leaseMs: LEASE_MS, label: "import 7" });
  await sleep(20);
  const over = new AbortController();
  const wait = { waitMs: Infinity, signal: over.signal };
  const beforeMs = Date.now();
  const waits = Promise.allSettled([
    ci.mutex("stock").acquire({ ...wait, label: "reserve" }),
    api.mutex("orders").acquire({ ...wait, label: "bill" }),
  ]);
  try {
    const console = await builtConsole(redis);
    const { page, trouble } = await browser.open(console.origin);
    await enter(page, console);
    const section = page.getByRole("region", { name: "Possible deadlock" });
    await section.waitFor();

    const process = `${hostname()}/${pid}`;
    const members = await section.getByRole("listitem").allInnerTexts();
    expect(members.toSorted()).toEqual([
      `${process} api holds stock (mutex, import 7) and waits for orders (mutex, bill)`,
      `${process} ci holds orders (mutex, nightly export) and waits for stock (mutex, reserve)`,
    ]);

    await section.getByText(/^2 clients wait for each other for \d+s:$/).waitFor();
    const since = Date.parse((await section.locator("time").getAttribute("datetime")) ?? "");
    expect(since).toBeGreaterThanOrEqual(beforeMs);
    expect(since).toBeLessThanOrEqual(Date.now());

    const advice = section.getByText("To end it, release");
    expect(await advice.textContent()).toContain(
      "To end it, release stock (mutex, import 7), whose holder has held it for the shortest time.",
    );
    await advice.getByText(`holdfast release stock --token ${stock.token} -m 'WHY'`, { exact: true }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await advice.getByRole("link", { name: "stock" }).click();
    await page.getByRole("heading", { level: 1, name: "stock" }).waitFor();
    expect(trouble).toEqual([]);
  } finally {
    over.abort();
    await waits;
    await Promise.all([orders.release(), stock.release()]);
  }
});
