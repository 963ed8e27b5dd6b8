/**
 * Tests the questions of an incident on real processes: one command and one console page answer each of them.
 *
 * `npm run incident` writes packages/cli/docs/incident.md and its pictures with this test.
 */
import { existsSync, readFileSync } from "node:fs";
import { env } from "node:process";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import {
  browserScene,
  expectNoSidewaysScroll,
  picture,
  seriousFindings,
} from "../../console/long-tests/console/browser.js";
import { builtPages } from "../../console/long-tests/console/built-console.js";
import { type Answered, takePicture, writePage } from "./incident/docs.js";
import { BACK, DOWN, type Question, UP } from "./incident/questions.js";
import { type Incident, type RunningConsole, startIncident } from "./incident/scene.js";

const IS_WRITTEN = env.HOLDFAST_INCIDENT === "write";
const LIMIT_MS = 900_000;

const browser = browserScene();
builtPages();

let incident: Incident;
beforeAll(async () => {
  incident = await startIncident();
}, LIMIT_MS);
afterAll(() => incident?.close());

type Screens = Readonly<Record<"desktop" | "phone", Page>>;

async function screensOf({ origin, address }: RunningConsole): Promise<Screens> {
  const desktop = await browser.open(origin, { height: 720 });
  const phone = await browser.open(origin, { width: 390, height: 780, theme: "dark" });
  for (const { page } of [desktop, phone]) {
    page.setDefaultTimeout(300_000);
    await page.goto(address);
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
  }
  return { desktop: desktop.page, phone: phone.page };
}

/** Runs the command and checks the page. @returns what the command printed */
async function ask(question: Question, screens: Screens): Promise<Answered> {
  const { words, code = 0, says } = question;
  const servers = ["--redlock", ...incident.redlock.flatMap(({ url }) => ["-r", url])];
  const said = await incident.say(...words.flatMap((word) => (word === "REDLOCK" ? servers : [word])));
  const output = said.stdout + said.stderr;
  expect([said.code, output]).toEqual([code, expect.anything()]);
  for (const pattern of says) expect(output).toMatch(pattern);
  for (const [screen, page] of Object.entries(screens)) {
    await page.goto(`${new URL(page.url()).origin}/${question.page}`);
    for (const text of question.shows) await seeOn(page, text);
    await expectNoSidewaysScroll(page);
    expect(await seriousFindings(page), `${question.question} on a ${screen}`).toEqual([]);
    for (const { file, on } of IS_WRITTEN ? (question.pictures ?? []) : []) {
      if (on === screen) await takePicture(page, file);
    }
  }
  return { question, output };
}

/** Waits for the text on the page. If it does not appear, saves a picture of the page. */
async function seeOn(page: Page, text: string | RegExp): Promise<void> {
  try {
    await page.getByText(text).and(page.locator(":visible")).first().waitFor();
  } catch (error) {
    await picture(page, "incident-failed");
    throw error;
  }
}

it("one command and one console page answer each question of an incident", { timeout: LIMIT_MS }, async () => {
  const answers: Answered[] = [];
  const screens = await screensOf(await incident.console("--env", "prod", "--allow", "release,pause,resume"));
  const redlock = await screensOf(
    await incident.console("--redlock", ...incident.redlock.flatMap(({ url }) => ["-r", url])),
  );
  for (const question of UP) {
    answers.push(await ask(question, question.words.includes("REDLOCK") ? redlock : screens));
  }
  if (IS_WRITTEN) await pictureOfRelease(screens.desktop);

  const deadlock = answers.find(({ question }) => question.words.includes("--deadlocks"));
  const [, command = ""] = /to end it: holdfast (.*) -m WHY/.exec(deadlock?.output ?? "") ?? [];
  expect((await incident.say(...command.split(" "), "-m", "a test")).code).toBe(0);
  expect((await incident.say("ls", "--deadlocks")).stdout).toBe("no possible deadlocks\n");

  await incident.stopRedis();
  answers.push(await ask(DOWN, screens));
  // On a busy machine a server may need longer than one start allows, so try again.
  await vi.waitFor(() => incident.redis.restart(), { timeout: 300_000 });
  await vi.waitUntil(async () => (await incident.say(...BACK.words)).stdout.includes("sync:eu"), {
    timeout: 300_000,
    interval: 250,
  });
  answers.push(await ask(BACK, screens));
  if (IS_WRITTEN) writePage(answers, incident);
});

it("the incident page of the docs shows each question with its command and pictures", () => {
  const text = readFileSync(new URL("../docs/incident.md", import.meta.url), "utf8");
  for (const { question, words, pictures = [] } of [...UP, DOWN, BACK]) {
    expect(text).toContain(`## ${question}\n`);
    expect(text).toContain(`$ holdfast ${words.join(" ").replace("REDLOCK", "--redlock")}`);
    for (const { file, alt } of pictures) {
      expect(text).toContain(`![${alt}](../../../docs/console/${file})`);
      expect(existsSync(new URL(`../../../docs/console/${file}`, import.meta.url)), file).toBe(true);
    }
  }
});

async function pictureOfRelease(page: Page): Promise<void> {
  await page.goto(`${new URL(page.url()).origin}/#/lock?kind=mutex&name=report%3Adaily`);
  await page.getByRole("button", { name: /^Release the hold/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("its host was powered off");
  await dialog.getByLabel(/^Type the name/).fill("report:daily");
  await takePicture(page, "release.png");
  await page.keyboard.press("Escape");
}
