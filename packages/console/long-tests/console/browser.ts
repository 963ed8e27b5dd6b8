/**
 * Starts a real headless Chromium whose pages record everything that must not happen.
 *
 * The binary comes from HOLDFAST_CHROMIUM or from PATH. Without one, the start fails with a one-line error and no
 * test is skipped.
 */
import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { env } from "node:process";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";

/** The folder for screenshots of a run. Git ignores it. */
export const PICTURES: string = fileURLToPath(new URL("../../../../.cache/console-screenshots", import.meta.url));

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** A timeout for events that never come; it does not measure speed. */
const PATIENCE_MS = 60_000;

/** The settings with which a page is viewed, such as theme and size. */
export interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly theme?: "light" | "dark";
}

/** A page that records what goes wrong in it. */
export interface WatchedPage {
  readonly page: Page;
  /** Console errors and warnings, requests blocked by the content security policy, and requests to other origins. */
  readonly trouble: readonly string[];
}

/** The browser that a test file uses. */
export interface BrowserScene {
  /** Opens a page with separate cookies, like another visitor. `origin` is the only origin that it may request. */
  open(origin: string, look?: Look): Promise<WatchedPage>;
}

/** Starts a browser for the test file. Its pages are closed after each test. */
export function browserScene(): BrowserScene {
  let browser: Browser;
  const opened: Page[] = [];
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: chromiumPath(),
      args: ["--no-sandbox", "--headless", "--disable-background-networking"],
    });
  });
  afterEach(async () => {
    for (const page of opened.splice(0)) await page.context().close();
  });
  afterAll(() => browser?.close());
  return {
    async open(origin, { width = 1_280, height = 800, theme = "light" } = {}) {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
      const page = await context.newPage();
      opened.push(page);
      page.setDefaultTimeout(PATIENCE_MS);
      const trouble: string[] = [];
      page.on("console", (message) => {
        if (message.type() === "error" || message.type() === "warning") trouble.push(message.text());
      });
      page.on("pageerror", (error) => trouble.push(String(error.stack)));
      page.on("dialog", (dialog) => {
        trouble.push(`a name became a program: ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on("request", (request) => {
        if (!request.url().startsWith(`${origin}/`)) trouble.push(`asked elsewhere: ${request.url()}`);
      });
      await page.addInitScript(
        "addEventListener('securitypolicyviolation', (e) => console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI))",
      );
      return { page, trouble };
    },
  };
}

/** The serious findings of axe for the current view, as `rule: element`. */
export async function seriousFindings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  // An element that is fading in does not have its final contrast yet.
  await page.evaluate("Promise.allSettled(document.getAnimations().map((one) => one.finished))");
  interface Violation {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
  }
  const violations = await page.evaluate<readonly Violation[]>("axe.run(document).then((result) => result.violations)");
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
    );
}

/** Expects that no element is wider than the window, so the page does not scroll sideways. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const [needs, has] = await page.evaluate<[number, number]>("[document.documentElement.scrollWidth, innerWidth]");
  expect(needs, "the page is wider than the window").toBeLessThanOrEqual(has);
}

/** Saves a screenshot among the artifacts of the run. */
export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

function chromiumPath(): string {
  if (env.HOLDFAST_CHROMIUM !== undefined) return env.HOLDFAST_CHROMIUM;
  for (const folder of (env.PATH ?? "").split(delimiter))
    for (const name of ["chromium", "chromium-browser", "google-chrome"])
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not in this directory of PATH; try the next.
      }
  throw new Error("chromium is missing; install it (apt-get install chromium), or set HOLDFAST_CHROMIUM to a binary");
}
