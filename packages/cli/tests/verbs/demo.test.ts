/** `holdfast demo`, at its shortest. */
import { describe, expect, it } from "vitest";
import { newStage } from "./harness.js";

const stage = newStage();

describe("demo", () => {
  it("needs no Redis, and settles every payment once with a worker killed in the middle of one", async () => {
    const before = await stage.redis.command("DBSIZE");
    const document = await stage.ask("demo", "--workers", "3", "--for", "5s");
    expect(document).toMatchObject({ v: 1, ok: true, faults: [], withLock: { duplicates: 0 } });
    // HOLDFAST_REDIS was there, and was not looked at.
    expect(await stage.redis.command("DBSIZE")).toBe(before);
  });

  it("with -r runs its workers as processes, and leaves no key behind", async () => {
    const { code, stdout, stderr } = await stage.say("demo", "-r", stage.redis.url, "--workers", "2", "--for", "5s");
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/was killed with -9 while it held payment:\d+/);
    expect(stdout).toMatch(/\ndemo: \d+ duplicate orders without a lock, 0 with one; 1 worker killed\n$/);
    expect(await stage.redis.command("KEYS", "hf-demo*")).toEqual([]);
  });

  it("refuses a Redis on which the prefix is in use, and changes nothing there", async () => {
    await stage.redis.command("SET", "hf-demo:mutex:{mine}", "x");
    const { code, stderr } = await stage.say("demo", "-r", stage.redis.url, "--for", "5s");
    expect(code).toBe(1);
    expect(stderr).toContain("nothing was changed");
    expect(await stage.redis.command("GET", "hf-demo:mutex:{mine}")).toBe("x");
    await stage.redis.command("DEL", "hf-demo:mutex:{mine}");
  });
});
