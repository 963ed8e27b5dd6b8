/** The built site, as a reader sees it in a browser. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { execPath } from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { browserScene, expectNoSidewaysScroll, picture } from "../../packages/console/long-tests/console/browser.js";

const PHONE = { width: 390, height: 844 };
const pages = readdirSync(fileURLToPath(new URL("../.vitepress/dist", import.meta.url)), { recursive: true })
  .map((file) => `/${String(file)}`)
  .filter((file) => file.endsWith(".html") && file !== "/404.html")
  .map((file) => file.replace(/\.html$/, "").replace(/\/index$/, "/"));

const scene = browserScene();
let server: ChildProcess;
let origin: string;

beforeAll(async () => {
  server = spawn(execPath, [fileURLToPath(new URL("../serve.mjs", import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  if (server.stdout === null) throw new Error("the server has no output");
  [origin] = (await once(createInterface(server.stdout), "line")) as [string];
});
afterAll(() => server?.kill());

describe("the site", () => {
  it("opens every page without an error and without a request to elsewhere", async () => {
    const { page, trouble } = await scene.open(origin);
    const untitled: string[] = [];
    for (const path of pages) {
      const response = await page.goto(`${origin}${path}`);
      expect(response?.status(), path).toBe(200);
      if ((await page.locator(".vp-doc h1").count()) === 0) untitled.push(path);
    }
    expect(untitled).toEqual([]);
    expect(trouble).toEqual([]);
  });

  it("finds a page by a word in its text", async () => {
    const { page, trouble } = await scene.open(origin);
    await page.goto(`${origin}/`);
    await picture(page, "site-first-page");
    await page.locator("#local-search button").first().click();
    await page.locator(".VPLocalSearchBox input").fill("fencing token");
    await page.locator(".VPLocalSearchBox .result").first().waitFor();
    await picture(page, "site-search");
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.pathname !== "/");
    await page
      .getByText(/fencing/i)
      .first()
      .waitFor();
    expect(trouble).toEqual([]);
  });

  it("is dark for readers who prefer it, and changes on a click", async () => {
    const { page } = await scene.open(origin, { theme: "dark" });
    await page.goto(`${origin}/safety`);
    const background = (): Promise<string> => page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
    await page.locator("html.dark").waitFor();
    const dark = await background();
    await picture(page, "site-dark");
    await page.locator(".VPSwitchAppearance:visible").first().click();
    await page.locator("html:not(.dark)").waitFor();
    expect(await background()).not.toBe(dark);
  });

  it("has pages in Chinese, with their own menu and a way back", async () => {
    const { page, trouble } = await scene.open(origin);
    await page.goto(`${origin}/zh/`);
    await page.locator("html[lang=zh-CN]").waitFor();
    await page.locator("#local-search button", { hasText: "搜索" }).first().waitFor();
    await page.locator(".VPSidebar").getByRole("link", { name: "快速开始" }).click();
    await page.waitForURL(`${origin}/zh/getting-started`);
    await page.locator(".vp-doc h1", { hasText: "快速开始" }).waitFor();
    await picture(page, "site-chinese");
    await page.locator(".VPNavBarTranslations").hover();
    await page.locator(".VPNavBarTranslations").getByRole("link", { name: "English" }).click();
    await page.locator("html[lang=en-US]").waitFor();
    expect(trouble).toEqual([]);
  });

  it("fits a phone, where a menu leads to the other pages", async () => {
    const { page } = await scene.open(origin, PHONE);
    for (const path of ["/zh/", "/", "/kinds", "/errors"]) {
      await page.goto(`${origin}${path}`);
      await expectNoSidewaysScroll(page);
    }
    await picture(page, "site-phone");
    await page.locator(".VPLocalNav .menu").click();
    await page.locator(".VPSidebar").getByRole("link", { name: "Glossary" }).click();
    await page.waitForURL(`${origin}/glossary`);
  });
});
