/** Tests keys of the wrong type where a lock stores its data: they are reported, and hide nothing else. */
import { expect, it } from "vitest";
import { newStage } from "./harness.js";

const stage = newStage();

const LIST = "hf:mutex:{a list}";
const TEXT = "hf:semaphore:{text}";
const QUEUE = "hf:mutex:{good}:queue";

it("ls, top, show and pause still work and name a key of the wrong type; doctor says how to delete it", async () => {
  const { redis, holdfast } = stage;
  await holdfast.mutex("held").acquire({ leaseMs: 600_000 });
  await redis.command("LPUSH", LIST, "junk");
  await redis.command("SET", TEXT, "junk");
  await redis.command("SET", QUEUE, "junk");
  await redis.command("LPUSH", "hf:history:{held}", "junk");

  const listed = await stage.say("ls", "-o", "name,kind,state", "--no-headings");
  expect(listed.code).toBe(0);
  expect(
    listed.stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/)),
  ).toEqual([
    ["a list", "mutex", "broken"],
    ["good", "mutex", "broken"],
    ["held", "mutex", "held"],
    ["text", "semaphore", "broken"],
  ]);
  for (const key of [LIST, TEXT, QUEUE]) {
    expect(listed.stderr).toContain(`the key ${key} is of a type that Holdfast does not write`);
    expect(listed.stderr).toContain(`redis-cli UNLINK '${key}'`);
  }
  const { locks } = await stage.ask("ls", "good");
  expect(locks).toMatchObject([{ name: "good", state: "broken", unreadableKeys: [QUEUE] }]);

  const top = await stage.ask("top", "--once");
  expect(top.locks.map(({ name }) => name).toSorted()).toEqual(["a list", "good", "held", "text"]);

  const shown = await stage.say("show", "text");
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(
    /^text: semaphore, broken\n {2}cannot be read: the key hf:semaphore:\{text\} is of a type that/,
  );
  expect(await stage.ask("show", "held")).toMatchObject({ state: "held", history: [] });
  // A script must not take a lock that cannot be read for a free one.
  const codes = ["text", "good", "held", "free"].map(async (name) => (await stage.say("show", name, "-q")).code);
  expect(await Promise.all(codes)).toEqual([65, 65, 0, 1]);

  const paused = await stage.say("pause", "a list", "-m", "why");
  expect([paused.code, paused.stderr]).toEqual([65, expect.stringContaining(`UNLINK '${LIST}'`)]);
  const released = await stage.say("release", "a list", "--force", "--yes", "-m", "why");
  expect([released.code, released.stderr]).toEqual([
    65,
    expect.stringContaining("nothing was released: a list cannot be"),
  ]);
  expect(await stage.say("pause", "held", "-m", "why")).toMatchObject({ code: 0 });

  const doctor = await stage.say("doctor", "--only", "leftovers", "--for", "60s");
  expect(doctor.stdout).toContain("3 keys of the wrong type");
  for (const key of [LIST, TEXT, QUEUE]) expect(doctor.stdout).toContain(`redis-cli UNLINK '${key}'`);
});

it("show names all candidates if it cannot tell which key has the wrong type", async () => {
  await stage.redis.command("SET", "hf:mutex:{two}", "x");
  await stage.redis.command("LPUSH", "hf:mutex:{two}:fence", "junk");
  const { stdout } = await stage.say("show", "two");
  expect(stdout).toContain("one of the keys hf:mutex:{two}, hf:mutex:{two}:fence is of a type that");
  expect(stdout).toContain("UNLINK only the one that is wrong");
  expect(stdout).not.toContain("redis-cli UNLINK");
});
