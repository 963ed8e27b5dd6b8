/** Locks that need other servers than those of the console: their pages say what is needed to release them. */
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { redisScene } from "../tests/scene.js";
import { browserScene } from "./console/browser.js";
import { builtConsole, builtPages, enter } from "./console/built-console.js";

const redis = redisScene();
const others = [redisScene(), redisScene()];
const browser = browserScene();
builtPages();

const LEASE_MS = 600_000;

let connections: readonly Redis[];
let quorum: Holdfast;
beforeAll(() => {
  connections = [redis, ...others].map(({ server }) => new Redis({ port: server.port }));
  quorum = createHoldfast({ redlock: connections });
});
afterAll(async () => {
  await quorum.close();
  for (const connection of connections) connection.disconnect();
});

it("the page of a Redlock in a console with one server prints no command, and says what is needed", async () => {
  // Writes the keys directly because a server that has just started does not vote for some time.
  await redis.server.command("SET", "hf:redlock:{ledger}", "ReH8GUZ6AOmR69do/1/600000/1", "PX", `${LEASE_MS}`);
  await redis.server.command("SET", "hf:redlock:{ledger}:fence", "7");
  const console = await builtConsole(redis, { allow: ["release"] });
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/lock?kind=redlock&name=ledger");
  await page.getByText("1 holder").waitFor();
  await page.getByText("use a console or the CLI with all of its servers (--redlock)").waitFor();
  expect(await page.getByText("holdfast release").count()).toBe(0);
});

it("the page of a lock on a single server in a console with several prints no command, and says what is needed", async () => {
  const lease = await redis.holdfast.mutex("nightly").acquire({ leaseMs: LEASE_MS });
  const console = await builtConsole(redis, { holdfast: quorum, allow: ["release"] });
  const { page } = await browser.open(console.origin);
  await enter(page, console, "#/lock?kind=mutex&name=nightly");
  await page.getByText("1 holder").waitFor();
  await page.getByText("use a console or the CLI with that server alone (-r)").waitFor();
  expect(await page.getByText("holdfast release").count()).toBe(0);
  await lease.release();
});

it("a deadlock of locks on a single server in a console with several prints no command, and says what is needed", async () => {
  const [ci, api] = [redis.another({ clientName: "ci" }), redis.another({ clientName: "api" })];
  const held = await ci.mutex("orders").acquire({ leaseMs: LEASE_MS });
  const other = await api.mutex("stock").acquire({ leaseMs: LEASE_MS });
  const over = new AbortController();
  const waits = Promise.allSettled([
    ci.mutex("stock").acquire({ waitMs: Infinity, signal: over.signal }),
    api.mutex("orders").acquire({ waitMs: Infinity, signal: over.signal }),
  ]);
  const console = await builtConsole(redis, { holdfast: quorum });
  const { page } = await browser.open(console.origin);
  await enter(page, console);
  const section = page.getByRole("region", { name: "Possible deadlock" });
  await section.getByText("use a console or the CLI with that server alone (-r)").waitFor();
  expect(await section.getByText("holdfast release").count()).toBe(0);
  over.abort();
  await waits;
  await Promise.all([held.release(), other.release()]);
});
