/** Tests `holdfast demo` with its shortest duration. */
import { chmod, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { until } from "../../../holdfast/src/testing/delays.js";
import { holdfast, newFolder, start, textIn } from "../support/command.js";
import { newStage } from "./harness.js";

const stage = newStage();

describe("demo", () => {
  it("needs no Redis, and settles every payment once although a worker is killed during one", async () => {
    const before = await stage.redis.command("DBSIZE");
    const document = await stage.ask("demo", "--workers", "3", "--for", "5s");
    expect(document).toMatchObject({ v: 1, ok: true, faults: [], withLock: { duplicates: 0 } });
    // HOLDFAST_REDIS was set, but the demo did not use that server.
    expect(await stage.redis.command("DBSIZE")).toBe(before);
  });

  it("prints the address of a console for the demo, and opens it in the browser", async () => {
    const folder = await newFolder();
    const opened = join(folder, "opened");
    // On a desktop this program opens the browser. This one records its argument.
    await writeFile(join(folder, "xdg-open"), `#!/bin/sh\necho "$1" > ${opened}.part && mv ${opened}.part ${opened}\n`);
    await chmod(join(folder, "xdg-open"), 0o755);
    const path = { PATH: `${folder}:${process.env.PATH}` };
    const going = start(["demo", "--open", "--workers", "1", "--for", "5m"], path);
    await until(() => textIn(opened) !== undefined, "the browser is called");
    const [, url = ""] = /^The console, meanwhile: (http:\S+)$/m.exec(going.stdout()) ?? [];
    expect(textIn(opened)).toBe(`${url}\n`);
    const [page = "", token] = url.split("#token=");
    const answer = await fetch(`${page}api/session`, { headers: { authorization: `Bearer ${token}` } });
    expect(await answer.json()).toMatchObject({ isSignedIn: true, allow: [], env: { name: "demo" } });
    going.signal("SIGINT");
    expect((await going.ended).code).toBe(130);
    // Without a terminal, the browser opens only on request.
    await rm(opened);
    expect((await holdfast(["demo", "--workers", "1", "--for", "5s"], path)).code).toBe(0);
    expect(textIn(opened)).toBeUndefined();
    expect((await holdfast(["demo", "--open", "--no-open"], path)).code).toBe(64);
  });

  it("runs its workers as processes if -r is given, and leaves no key behind", async () => {
    // A worker is killed in the middle of the demo if one is busy then. In the shortest demo, that phase is only a
    // second long.
    const { code, stdout, stderr } = await stage.say("demo", "-r", stage.redis.url, "--workers", "2", "--for", "10s");
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/was killed with -9 while it held payment:\d+/);
    expect(stdout).toMatch(/\ndemo: \d+ duplicate orders without a lock, 0 with one; 1 worker killed\n$/);
    expect(await stage.redis.command("KEYS", "hf-demo*")).toEqual([]);
  });

  it("exits with 1 and changes nothing if the prefix is in use on that Redis", async () => {
    await stage.redis.command("SET", "hf-demo:mutex:{mine}", "x");
    const { code, stderr } = await stage.say("demo", "-r", stage.redis.url, "--for", "5s");
    expect(code).toBe(1);
    expect(stderr).toContain(`another demo is running on ${stage.redis.url}`);
    expect(stderr).toContain("Nothing was changed. If none is running, delete its keys, which begin with hf-demo:");
    expect(await stage.redis.command("GET", "hf-demo:mutex:{mine}")).toBe("x");
    await stage.redis.command("DEL", "hf-demo:mutex:{mine}");
  });
});
