/** A console with the built pages in front of a real Redis, for browser tests. */
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import type { Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { buildPages } from "../../scripts/build-pages.mjs";
import type { AuditLine } from "../../src/audit.js";
import { createConsole } from "../../src/create-console.js";
import type { ConsoleOptions } from "../../src/options.js";
import { type ConsoleScene, type RedisScene, serveConsole, TOKEN } from "../../tests/scene.js";

const BUILT = fileURLToPath(new URL("../../dist/ui", import.meta.url));

/** Builds the pages if a source file is newer than the build. */
export function builtPages(): void {
  beforeAll(async () => {
    await buildPages();
  });
}

/** Types into the filter of a list with the keyboard only. The page handles keys only after it is drawn. */
export async function filterBy(page: Page, text: string): Promise<void> {
  const filter = page.locator("[data-filter]");
  await filter.waitFor();
  for (let isThere = false; !isThere; ) {
    await page.keyboard.press("/");
    isThere = await filter.evaluate((input) => input === input.ownerDocument.activeElement);
  }
  await page.keyboard.type(text);
}

/** Options of the console of a test. `servers: null` mounts it without servers. */
type BuiltOptions = Partial<Omit<ConsoleOptions, "servers">> & { readonly servers?: ConsoleOptions["servers"] | null };

/** Starts a console on this Redis. It polls often so that tests do not wait long. */
export function builtConsole(redis: RedisScene, { servers, ...options }: BuiltOptions = {}): Promise<ConsoleScene> {
  const audit: AuditLine[] = [];
  const handler = createConsole({
    holdfast: redis.holdfast,
    address: `redis://127.0.0.1:${redis.server.port}`,
    ...(servers === null ? {} : { servers: servers ?? (() => [clientOf(redis)]) }),
    topology: "single",
    token: TOKEN,
    pages: BUILT,
    pollMs: 250,
    audit: (line) => audit.push(line),
    report: () => {}, // that Redis is away is part of these tests, and shown on the page
    ...options,
  });
  return serveConsole(handler, { audit });
}

const clients = new Map<number, Redis>();
afterAll(() => {
  for (const client of clients.values()) client.disconnect();
});

function clientOf({ server }: RedisScene): Redis {
  const known = clients.get(server.port);
  if (known !== undefined) return known;
  const client = new Redis({ port: server.port, maxRetriesPerRequest: 1, commandTimeout: 1_000 });
  client.on("error", () => {});
  clients.set(server.port, client);
  return client;
}

/** Signs in via the URL and opens a page, such as `#/locks`. */
export async function enter(page: Page, console: ConsoleScene, hash = "#/locks"): Promise<void> {
  await page.goto(`${console.origin}/#token=${TOKEN}`);
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  await page.goto(`${console.origin}/${hash}`);
}
