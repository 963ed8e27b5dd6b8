import { keepSecret, plain, redact } from "@holdfast/console/text";
import { describe, expect, it } from "vitest";
import { parseLine, verbFirst } from "../src/frame/command-line.js";
import { formatMs, parseDuration, sleep } from "../src/frame/durations.js";
import { failureOf } from "../src/frame/failures.js";
import { commonFlags } from "../src/frame/flags.js";
import { table } from "../src/frame/output.js";
import { serverUrls } from "../src/frame/server-url.js";
import type { Verb } from "../src/frame/verb.js";
import { release } from "../src/verbs/release.js";

describe("flags before the verb", () => {
  it.each([
    ["-r redis://a ls", "ls -r redis://a"],
    ["-qr redis://a --json show a -q", "show -qr redis://a --json a -q"],
    ["--redis=redis://a --cluster run a -- ls -r b", "run --redis=redis://a --cluster a -- ls -r b"],
    ["--help run", "run --help"],
    // There is nothing to move.
    ["ls -r redis://a", "ls -r redis://a"],
    ["--version ls", "--version ls"],
    ["--help", "--help"],
    ["-r redis://a", "-r redis://a"],
    ["-q -- ls", "-q -- ls"],
    ["", ""],
  ])("%j is read as %j", (typed, read) => {
    const words = typed === "" ? [] : typed.split(" ");
    expect(verbFirst(words).join(" ")).toBe(read);
  });
});

describe("a duration", () => {
  it.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["2d", 172_800_000],
    ["30d", 2_592_000_000],
    ["1.5", 1_500],
    [".5", 500],
    ["1.5h", 5_400_000],
    ["0", 0],
  ])("%s is %i ms", (text, ms) => {
    expect(parseDuration("--wait", text)).toBe(ms);
  });

  it.each(["", "soon", "-1s", "1x", "30s1h", "1h 30m", "1e3", "s", "400d"])("%j is refused", (text) => {
    expect(() => parseDuration("--wait", text)).toThrow(/--wait must be .*; got/);
  });

  it("is refused with the accepted words, if words are accepted as well", () => {
    const words = ["hour", "day"];
    expect(() => parseDuration("--once-per", "3x", { words })).toThrow("--once-per must be hour, day or a duration");
  });

  it.each([
    [250, "250ms"],
    [24_000, "24s"],
    [192_000, "3m12s"],
    [3_840_000, "1h04m"],
    [180_000, "3m"],
    [183_600_000, "2d03h"],
    [-5, "0s"],
  ])("of %i ms is shown as %s", (ms, text) => {
    expect(formatMs(ms)).toBe(text);
  });

  it("may be longer than the limit of a timer, and an abort ends the sleep", async () => {
    const controller = new AbortController();
    let isOver = false;
    const slept = sleep(30 * 86_400_000, controller.signal).then(() => {
      isOver = true;
    });
    await sleep(20);
    expect(isOver).toBe(false);
    controller.abort();
    await slept;
  });
});

describe("a value that begins with a dash", () => {
  const verb: Verb = {
    ...release,
    options: { owner: { type: "string" }, message: { type: "string", short: "m" }, force: { type: "boolean" } },
  };
  const ownerOf = (...words: string[]) => parseLine(verb, ["name", ...words]).values;

  it("is the value of the flag before it, such as an owner id of an older version", () => {
    expect(ownerOf("--owner", "-Xy7/1/30000", "--force")).toMatchObject({ owner: "-Xy7/1/30000", force: true });
    expect(ownerOf("--owner", "--y7/1/30000")).toMatchObject({ owner: "--y7/1/30000" });
    expect(ownerOf("-m", "-why", "--owner=-x")).toMatchObject({ message: "-why", owner: "-x" });
    expect(ownerOf("--owner", "-mXy7/1/30000")).toMatchObject({ owner: "-mXy7/1/30000" });
  });

  it("is refused if it is a flag of the verb, because the value is missing", () => {
    for (const words of [["--owner", "--force"], ["--owner", "-m", "why"], ["--owner", "--message=why"], ["--owner"]]) {
      expect(() => ownerOf(...words)).toThrow(/--owner/);
    }
    expect(() => ownerOf("--force", "-x")).toThrow("release has no flag -x");
  });
});

describe("common flags", () => {
  it("prefer the command line to the environment, and HOLDFAST_REDIS to REDIS_URL", () => {
    const env = {
      HOLDFAST_REDIS: "redis://a redis://b",
      REDIS_URL: "redis://c",
      HOLDFAST_PREFIX: "p",
      HOLDFAST_CLUSTER: "1",
    };
    expect(commonFlags({}, env)).toMatchObject({ urls: ["redis://a", "redis://b"], prefix: "p", topology: "cluster" });
    expect(commonFlags({ redis: ["redis://d"], prefix: "q" }, env)).toMatchObject({ urls: ["redis://d"], prefix: "q" });
    expect(commonFlags({}, { REDIS_URL: "redis://c" }).urls).toEqual(["redis://c"]);
  });

  it("are not read from the variables that run sets for its command", () => {
    const flags = commonFlags(
      {},
      { HOLDFAST_NAME: "n", HOLDFAST_TOKEN: "1", HOLDFAST_LEASE_MS: "3", REDIS_URL: "redis://c" },
    );
    expect(JSON.stringify(flags)).not.toMatch(/"n"|"1"|"3"/);
  });

  it.each([
    [{ cluster: true, redlock: true }, {}, "--cluster and --redlock"],
    [{}, { HOLDFAST_JSON: "maybe" }, "HOLDFAST_JSON must be 1 or 0"],
    [{ protocol: "dbus" }, {}, "--protocol must be native, redisson or timestamp:DIALECT"],
    [{ prefix: "a b" }, {}, "--prefix must be"],
    [{ "command-timeout": "2h" }, {}, "--command-timeout must be 10ms to 1m"],
  ])("%j %j are refused", (given, env, message) => {
    expect(() => commonFlags(given, env)).toThrow(message);
  });
});

describe("a password", () => {
  it.each([
    ["redis://:s3cret@h:1/0", "redis://:***@h:1/0"],
    ["redis://ana:s3cret@h", "redis://ana:***@h"],
    ["rediss://s3cret@h", "rediss://***@h"],
    ["at redis://u:s3c@ret@h, redis://h2", "at redis://u:***@h, redis://h2"],
  ])("in %s is hidden", (text, shown) => {
    expect(redact(text)).toBe(shown);
  });

  it("is hidden in texts that repeat it without its URL", () => {
    serverUrls("run", commonFlags({ redis: ["redis://:p%40ss-w0rd@h"] }, {}));
    keepSecret("from a file");
    expect(redact("AUTH p@ss-w0rd and from a file")).toBe("AUTH *** and ***");
  });
});

describe("an error", () => {
  const named = (name: string, message: string, code?: string): Error =>
    Object.assign(new Error(message), { name, code });

  it.each([
    [named("ReplyError", "NOAUTH Authentication required."), 77],
    [named("ReplyError", "NOPERM this user has no permissions"), 77],
    [named("ReplyError", "WRONGTYPE Operation against a key"), 65],
    [named("Error", "connect ECONNREFUSED", "ECONNREFUSED"), 69],
    [named("StoreError", "no answer", "ERR_LOCK_STORE"), 69],
    [named("AcquireTimeoutError", "busy", "ERR_LOCK_ACQUIRE_TIMEOUT"), 75],
    [named("CapacityMismatchError", "3, 4", "ERR_LOCK_CAPACITY_MISMATCH"), 65],
    [new TypeError("x is not a function"), 125],
  ])("%s has the exit code %i", (error, code) => {
    expect(failureOf(error).code).toBe(code);
  });

  it("has the exit code of its cause", () => {
    const cause = named("ReplyError", "WRONGPASS invalid username-password pair");
    expect(failureOf(Object.assign(new Error("no answer", { cause }), { code: "ERR_LOCK_STORE" })).code).toBe(77);
  });
});

describe("a table", () => {
  it("aligns columns, also for characters of double width, and escapes control characters", () => {
    const columns = [
      { heading: "NAME", cell: ({ name }: { name: string }) => name },
      { heading: "LABEL", cell: ({ name }: { name: string }) => (name === "a" ? undefined : "x") },
    ];
    expect(table(columns, [{ name: "a" }, { name: "日本" }, { name: "b\n\x1b[2J" }]).split("\n")).toEqual([
      "NAME          LABEL",
      "a             -",
      "日本          x",
      "b\\x0a\\x1b[2J  x",
      "",
    ]);
    expect(plain("a\u202eb")).toBe("a\\u202eb");
  });
});
