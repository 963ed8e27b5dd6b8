/** Tests `holdfast ls` with locks that are really held. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../holdfast/src/testing/delays.js";
import { type Document, MAIN, newStage } from "./harness.js";

/** Clears the screen, starts a new line, and reverses the direction of the text. */
const HOSTILE = "evil\x1b[2J\nname\u202e";

const stage = newStage();
let token: number;

beforeAll(async () => {
  const { holdfast } = stage;
  const lease = await holdfast.mutex("deploy:prod").acquire({ label: "release 4.2" });
  token = lease.token;
  await stage.queueUp(stage.client("one"), "deploy:prod", "first");
  await stage.queueUp(stage.client("two"), "deploy:prod", "second");
  await holdfast.semaphore("pool:pdf", { permits: 5 }).acquire({ permits: 2 });
  await holdfast.semaphore("pool:pdf", { permits: 5 }).acquire();
  await holdfast.readWriteLock("catalog").read.acquire();
  await holdfast.election("feed").campaign("10.0.0.7:8080");
  await holdfast.mutex("idle").run(() => {});
  await stage.client("three").mutex(HOSTILE).acquire({ label: "\x1b]0;owned\x07" });
});

describe("ls", () => {
  it("lists locks by name, with holder, token, waiters and label", async () => {
    const { code, stdout, stderr } = await stage.say("ls");
    const lines = stdout.trimEnd().split("\n");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(lines[0]).toMatch(/^NAME +KIND +STATE +HOLDER +FOR +LEFT +TOKEN +WAIT +LABEL$/);
    expect(lines.slice(1).map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ["catalog", "read-write-lock", "1 reader"],
      ["deploy:prod", "mutex", "held"],
      ["evil\\x1b[2J\\x0aname\\u202e", "mutex", "held"],
      ["feed", "election", "held"],
      ["pool:pdf", "semaphore", "3 of 5"],
    ]);
    const deploy = lines[2]?.split(/ {2,}/) ?? [];
    expect(deploy[3]).toBe(`${hostname()}/${process.pid} tests`);
    expect(deploy.slice(6)).toEqual([String(token), "2", "release 4.2"]);
  });

  it("escapes control characters of names and labels", async () => {
    const { stdout } = await stage.say("ls", "--color", "always");
    expect(stdout).toContain("\\x1b]0;owned\\x07");
    // Only the color sequences of `holdfast` may begin with ESC.
    expect(stdout.replace(/\p{Cc}\[\d+m/gu, "")).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
  });

  it("prints names and times unchanged with --raw", async () => {
    const { stdout } = await stage.say("ls", "deploy:*", "--raw", "-o", "name,state,token,waiters,since,left");
    const [name, state, shown, waiters, since, left] = stdout.trimEnd().split("\t");
    expect([name, state, shown, waiters]).toEqual(["deploy:prod", "held", String(token), "2"]);
    expect(Number(since)).toBe(Math.floor(token / 1_000));
    expect(Number(left)).toBeLessThanOrEqual(30_000);
    expect((await stage.say("ls", "evil*", "--raw", "-o", "name")).stdout).toBe(`${HOSTILE}\n`);
  });

  it("exits with 64 for an invalid cursor", async () => {
    const { code, stderr } = await stage.say("ls", "--cursor", "zzz");
    expect(code).toBe(64);
    expect(stderr).toMatch(/^holdfast: --cursor must be .*zzz/);
  });

  it("prints the documented fields with --json", async () => {
    const document = await stage.ask("ls", "--kind", "mutex", "--waiting");
    expect(document).toMatchObject({ v: 1, nextCursor: null });
    expect(document.locks).toHaveLength(1);
    const [lock] = document.locks;
    expect(lock).toMatchObject({
      name: "deploy:prod",
      kind: "mutex",
      state: "held",
      waiters: 2,
      permits: null,
      label: "release 4.2",
      pausedBy: null,
    });
    expect(lock?.holders[0]).toMatchObject({ host: hostname(), pid: process.pid, app: "tests", token });
  });

  it("filters by pattern, kind, holder and duration of the hold", async () => {
    const names = async (...words: string[]): Promise<string[]> =>
      (await stage.ask("ls", ...words)).locks.map(({ name }) => name);
    expect(await names("p*")).toEqual(["pool:pdf"]);
    expect(await names("--kind", "election", "--kind", "semaphore")).toEqual(["feed", "pool:pdf"]);
    expect(await names("--holder", "three")).toEqual([HOSTILE]);
    expect(await names("--held-over", "1h")).toEqual([]);
    expect(await names("--all", "idle")).toEqual(["idle"]);
  });

  it("sorts by age and by waiters", async () => {
    const { stdout } = await stage.say("ls", "--sort", "waiters", "-o", "name", "--no-headings");
    expect(stdout.split("\n")[0]).toBe("deploy:prod");
    const byAge = await stage.ask("ls", "--sort", "since", "--kind", "mutex");
    expect(byAge.locks.map(({ name }) => name)).toEqual(["deploy:prod", HOSTILE]);
  });

  it("lists each lock once across the pages of a cursor", async () => {
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page: Document = await stage.ask(
        "ls",
        "--limit",
        "2",
        ...(cursor === undefined ? [] : ["--cursor", cursor]),
      );
      seen.push(...page.locks.map(({ name }) => name));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen.toSorted()).toEqual(["catalog", "deploy:prod", HOSTILE, "feed", "pool:pdf"]);
  });

  it("exits with 64 for unknown values, and names the accepted ones", async () => {
    const wrong = await Promise.all([
      stage.say("ls", "-o", "nam"),
      stage.say("ls", "--kind", "mutexes"),
      stage.say("ls", "--sort", "age"),
      stage.say("ls", "a", "b"),
      stage.say("ls", "--protocol", "redisson"),
    ]);
    expect(wrong.map(({ code }) => code)).toEqual([64, 64, 64, 64, 64]);
    expect(wrong[0]?.stderr).toMatch(/^holdfast: -o takes the columns name kind .*; got "nam"\n$/);
    expect(wrong[1]?.stderr).toContain("must be one of mutex");
  });

  it("prints only headings and exits with 0 if there are no locks", async () => {
    const { code, stdout } = await stage.say("ls", "nothing:*");
    expect(code).toBe(0);
    expect(stdout.split("\n")).toHaveLength(2);
  });

  it("prints a line of JSON at each interval with --watch --json, and exits with 0 on INT", async () => {
    const going = stage.start("ls", "feed", "--watch", "0.1", "--json");
    await until(() => going.stdout().split("\n").length > 3, "three lines");
    going.child.kill("SIGINT");
    const { code, stdout } = await going.ended;
    expect(code).toBe(0);
    for (const line of stdout.trimEnd().split("\n")) expect(JSON.parse(line).locks[0].name).toBe("feed");
  });

  it.each(["ls --watch 0.1 --no-headings", "history --since 1h", "ls --limit 1000"])(
    "%s ends without an error message when its reader closes the pipe",
    async (words) => {
      const shell = `"$0" "$1" ${words} | head -n 1 > /dev/null; echo done`;
      const child = spawn("sh", ["-c", shell, process.execPath, MAIN], {
        env: { ...process.env, HOLDFAST_REDIS: stage.redis.url },
      });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += String(data)));
      await once(child, "close");
      expect(output).toBe("done\n");
    },
  );
});
