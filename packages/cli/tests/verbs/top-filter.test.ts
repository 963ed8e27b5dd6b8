/** The filter of `top` with more locks than it reads, on a terminal. */
import { PassThrough } from "node:stream";
import { beforeAll, expect, it } from "vitest";
import { until } from "../../../holdfast/src/testing/delays.js";
import { dispatch } from "../../src/frame/dispatch.js";
import { newStage } from "./harness.js";

const stage = newStage();
const LOCKS = 8_000;
const HALF_AN_HOUR_MS = 1_800_000;

/** Writes the keys that this many acquires would leave. */
const FILL = `
  for n = 1, tonumber(ARGV[1]) do
    redis.call('SET', (string.gsub(KEYS[1], 'first', tostring(n))), redis.call('GET', KEYS[1]), 'PX', 1800000)
  end`;

beforeAll(async () => {
  await stage.holdfast.mutex("many:first").acquire({ leaseMs: HALF_AN_HOUR_MS });
  const [key = ""] = (await stage.redis.command("KEYS", "*mutex:{many:first}")) as string[];
  await stage.redis.command("EVAL", FILL, 1, key, LOCKS);
});

it("top says that its filter searched only a part of the locks, and which command searches all names", async () => {
  const terminal = { isTTY: true, columns: 100, rows: 12 };
  const stdin = Object.assign(new PassThrough(), terminal);
  const stdout = Object.assign(new PassThrough(), terminal);
  const env = { HOLDFAST_REDIS: stage.redis.url, HOLDFAST_COLOR: "never", HOLDFAST_COMMAND_TIMEOUT: "30s" };
  let screen = "";
  // Each draw is one write.
  stdout.on("data", (text) => {
    screen = String(text);
  });
  const ended = dispatch(["top", "--interval", "100ms"], { stdin, stdout, stderr: new PassThrough(), env }, () => "0");
  await until(() => screen.includes("sorted by"), "the list");
  expect(screen).not.toContain("searched only");
  stdin.write("/none:[x]");
  const command = String.raw`holdfast ls '*none:\[x]*'`;
  await until(() => screen.includes(command), "the command that searches all locks");
  expect(screen).toMatch(/^searched only \d{4} locks; all names, case-sensitive: holdfast ls /m);
  stdin.write("\r\u001b");
  await until(() => !screen.includes("searched only"), "the list without a filter");
  stdin.write("q");
  expect(await ended).toBe(0);
});

it("top --once says that it did not read all locks", async () => {
  const { stderr } = await stage.say("top", "--once", "--command-timeout", "30s");
  expect(stderr).toMatch(/^holdfast: only \d{4} locks were read: narrow them with PATTERN\n$/);
});
