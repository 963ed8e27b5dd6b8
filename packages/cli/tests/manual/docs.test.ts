/**
 * Tests that the commands print what docs/cli.md and docs/cli-operators.md show, except for host names, numbers and
 * times.
 */
import { readFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { fileURLToPath } from "node:url";
import type { Lease } from "holdfast";
import { beforeAll, describe, expect, it } from "vitest";
import { newStage } from "../verbs/harness.js";

/** In reading order, because the second page continues the examples of the first. */
const DOCUMENTS = ["cli.md", "cli-operators.md"].map((page) =>
  fileURLToPath(new URL(`../../../../docs/${page}`, import.meta.url)),
);

interface Shown {
  readonly command: string;
  readonly output: string;
}

/** Returns every `$ command` in a console block, with the output below it. */
function shownIn(markdown: string): Shown[] {
  return [...markdown.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = ""]) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((piece) => {
        const [command = "", ...lines] = piece.split("\n");
        return { command, output: lines.join("\n") };
      }),
  );
}

/** Replaces everything that differs from run to run. The order matters: longer patterns come first. */
function comparable(text: string): string {
  return text
    .replaceAll(`${userInfo().username}@${hostname()}`, "PERSON")
    .replaceAll("ana@ops-1", "PERSON")
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g, "TIME")
    .replace(/[\w-]{16}\/\d+\/\d+\/\d+/g, "OWNER")
    .replace(/\b\d{16}\b/g, "TOKEN")
    .replace(/[\w.-]+\/\d+ (?=[a-z])/g, "PROCESS ")
    .replaceAll(` ${hostname()} `, " HOST ")
    .replaceAll(" ci-7 ", " HOST ")
    .replace(/\b(\d+(ms|[smhd]))+\b/g, "SPAN")
    .split("\n")
    .map((line) => line.trim().replace(/ +/g, " "))
    .join("\n")
    .trim();
}

const stage = newStage();
let deploy: Lease;

beforeAll(async () => {
  const api = stage.client("api");
  deploy = await api.mutex("deploy:prod").acquire({ label: "release 4.2" });
  await stage.queueUp(stage.client("worker"), "deploy:prod", "smoke test");
  await stage.queueUp(stage.client("cron"), "deploy:prod", "rollback");
  for (let count = 0; count < 3; count += 1) await api.semaphore("pool:pdf", { permits: 5 }).acquire();
  await api.pause("nightly", { by: "ana@ops-1", label: "db maintenance" });
  await api.election("feed").campaign("10.0.0.7:8080");
});

describe("docs/cli.md and docs/cli-operators.md", () => {
  const shown = DOCUMENTS.flatMap((document) => shownIn(readFileSync(document, "utf8")));

  it("show every verb that reads or changes locks", () => {
    for (const verb of ["ls", "show", "release", "history", "pause", "resume", "elect", "top"]) {
      expect(
        shown.some(({ command }) => command.startsWith(`holdfast ${verb} `) || command === `holdfast ${verb}`),
      ).toBe(true);
    }
  });

  // Run the commands one after the other, as a reader would type them.
  it.each(shown)("show what `$command` prints", async ({ command, output }) => {
    const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
    const real = words.slice(1).map((word) => (/^\d{16}$/.test(word) ? String(deploy.token) : word));
    const { stdout, stderr } = await stage.say(...real);
    expect(comparable(stdout + stderr)).toBe(comparable(output));
  });
});

describe("the comparison", () => {
  it("detects a missing column, a different word and an extra line", () => {
    const line = "deploy:prod  mutex  held  ci-7/4211 api  3m12s  24s  1795330164221092  2  release 4.2";
    const same = "deploy:prod mutex held vm/1 api 1s 250ms 1795330164221093 2 release 4.2";
    expect(comparable(line)).toBe(comparable(same));
    for (const wrong of [
      same.replace("held", "paused"),
      same.replace(" 2 ", " 3 "),
      `${same}\nmore`,
      same.replace("1s ", ""),
    ]) {
      expect(comparable(line)).not.toBe(comparable(wrong));
    }
  });
});
