// @ts-check
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { env } from "node:process";
import { defineConfig } from "vitepress";

import { CHINESE, ENGLISH } from "../contents.mjs";
import { PAGES, placeOf } from "../pages.mjs";

/**
 * The sidebar of a language.
 *
 * @param {readonly import("../contents.mjs").Section[]} sections
 * @param {string} folder the folder of the language in `docs/`
 */
function sidebar(sections, folder = "") {
  return sections.map(({ text, pages }) => ({
    text,
    collapsed: text === "Recipes" || text === "Kinds",
    items: pages.map((entry) => {
      const [page, title] = typeof entry === "string" ? [entry] : entry;
      const place = placeOf(`docs/${folder}${page}.md`) ?? page;
      return { text: title ?? titleOf(place), link: `/${place.replace(/\.md$/, "").replace(/(^|\/)index$/, "$1")}` };
    }),
  }));
}

/** @param {string} place */
function titleOf(place) {
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(PAGES, place), "utf8")) ?? [];
  if (title === undefined) throw new Error(`${place} has no first heading; begin it with "# "`);
  return title.replaceAll("`", "");
}

/** The pages that TypeDoc wrote, one for each entry point. */
function reference() {
  const file = join(PAGES, "api/sidebar.json");
  /** @type {{ text: string, link: string }[]} */
  const entries = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  return { text: "API", collapsed: true, items: entries };
}

/** A padlock. */
const ICON =
  "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M4 7V5a4 4 0 0 1 8 0v2h1v8H3V7zm2 0h4V5a2 2 0 0 0-4 0z' fill='#3b6fd4'/></svg>";

const english = { label: "English", lang: "en-US" };
const chinese = {
  label: "简体中文",
  lang: "zh-CN",
  link: "/zh/",
  themeConfig: {
    nav: [{ text: "首页", link: "/zh/" }],
    sidebar: sidebar(CHINESE, "zh/"),
    outline: { label: "本页内容" },
    docFooter: { prev: "上一页", next: "下一页" },
    darkModeSwitchLabel: "外观",
    sidebarMenuLabel: "目录",
    returnToTopLabel: "回到顶部",
    langMenuLabel: "语言",
  },
};

/** The texts of the search box in Chinese. */
const SEARCH_IN_CHINESE = {
  button: { buttonText: "搜索", buttonAriaLabel: "搜索" },
  modal: {
    displayDetails: "显示详细列表",
    resetButtonTitle: "清除",
    backButtonTitle: "关闭搜索",
    noResultsText: "没有结果：",
    footer: {
      selectText: "选择",
      selectKeyAriaLabel: "回车",
      navigateText: "切换",
      navigateUpKeyAriaLabel: "上箭头",
      navigateDownKeyAriaLabel: "下箭头",
      closeText: "关闭",
      closeKeyAriaLabel: "Esc",
    },
  },
};

export default defineConfig({
  title: "Holdfast",
  description: "Distributed locks for Node.js on Redis and Valkey",
  srcDir: "pages",
  outDir: ".vitepress/dist",
  cacheDir: ".vitepress/cache",
  head: [["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  // The path that the site is served from, with a slash at both ends.
  base: env.HOLDFAST_DOCS_BASE ?? "/",
  cleanUrls: true,
  markdown: { theme: { light: "github-light-high-contrast", dark: "github-dark" } },
  locales: { root: english, ...(existsSync(join(PAGES, "zh/index.md")) && { zh: chinese }) },
  themeConfig: {
    search: { provider: "local", options: { locales: { zh: { translations: SEARCH_IN_CHINESE } } } },
    outline: [2, 3],
    nav: [
      { text: "Kinds", link: "/kinds" },
      { text: "Recipes", link: "/recipes/" },
      { text: "API", link: "/api/" },
    ],
    sidebar: [...sidebar(ENGLISH), reference()],
  },
});
