/** Verbs for a Redis user that may read the keys of some kinds of locks only. */
import { beforeAll, expect, test } from "vitest";
import { newStage } from "./harness.js";

const stage = newStage();
let user: readonly string[];
beforeAll(async () => {
  const patterns = ["mutex", "semaphore", "history", "client", "lineage"].map((family) => `~hf:${family}*`);
  await stage.redis.command("ACL", "SETUSER", "some", "on", ">secret", ...patterns, "&*", "+@all");
  user = ["-r", stage.redis.url.replace("redis://", "redis://some:secret@")];
});

test("show and release work for the kinds that the user may read", async () => {
  await stage.holdfast.semaphore("pool", { permits: 3 }).acquire({ leaseMs: 600_000 });
  const shown = await stage.say("show", "pool", ...user);
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(/^pool: semaphore, /);
  expect(shown.stdout).toContain("NOPERM");
  expect((await stage.say("show", "pool", "-q", ...user)).code).toBe(0);
  const released = await stage.say("release", "pool", "--force", "--yes", "-m", "test", ...user);
  expect(released).toMatchObject({ code: 0, stdout: expect.stringContaining("released pool from") });
});

test("if the kinds that the user may not read could use the name, the verbs say so", async () => {
  const refused = /cannot be read: NOPERM/;
  const quiet = await stage.say("show", "unused", "-q", ...user);
  expect([quiet.code, quiet.stderr]).toEqual([69, ""]);
  for (const words of [
    ["release", "unused", "--force", "--yes"],
    ["release", "unused", "--token", "7"],
    ["pause", "unused"],
  ]) {
    const { code, stderr } = await stage.say(...words, "-m", "test", ...user);
    expect([words, code, stderr]).toEqual([words, 77, expect.stringMatching(refused)]);
  }
});
