/** Tests the published package: a few CommonJS files without dependencies that behave like the compiled command. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { generalHelp, verbHelp } from "../src/frame/help.js";
import { loadVerb, VERBS } from "../src/frame/verbs-table.js";
import { version } from "../src/frame/version.js";
import { throughFullPipe } from "./support/full-pipe.js";
import { addDependencies, type Installed, install } from "./support/installed.js";

// Starting a process can take very long on a busy machine, so use long timeouts. No test here measures time.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/**
 * The largest size of what `run` loads, minified and compressed: the library, the client library, and the command. A
 * change that needs more must say so here: confirmations, echoes, protocol versions and shared inspections of the
 * library took 2 800 bytes.
 */
const MOST_BYTES = 154_800;
const VERB_NAMES = Object.keys(VERBS);
/** Long timeouts for servers on a busy machine, so that a failure here has another cause. */
const PATIENT = { HOLDFAST_CONNECT_TIMEOUT: "60s", HOLDFAST_COMMAND_TIMEOUT: "60s" };

const folder = mkdtempSync(join(tmpdir(), "holdfast-package-"));
let installed: Installed;
let redis: RedisServer;

beforeAll(async () => {
  [installed, redis] = await Promise.all([install(folder), startRedis()]);
  // Set the mode regardless of the umask, because the code cache is not used in a folder that others may write to.
  chmodSync(join(installed.home, "dist"), 0o755);
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true });
});

interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function call(program: string, words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Said> {
  const child = spawn(process.execPath, [program, ...words], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...PATIENT, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      said[stream] += text;
    });
  }
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, ...said })));
}

const inOrder = async (questions: readonly string[][], ask: (words: string[]) => Promise<Said>): Promise<Said[]> => {
  const answers: Said[] = [];
  for (const words of questions) answers.push(await ask(words));
  return answers;
};

function caches(): string[] {
  return readdirSync(join(installed.home, "dist")).filter((file) => file.endsWith(".cache"));
}

describe("help and the version", () => {
  it("need only the entry file and the file of texts", async () => {
    const bare = join(folder, "bare");
    mkdirSync(bare);
    for (const file of ["main.cjs", "answers.json"]) cpSync(join(installed.home, "dist", file), join(bare, file));
    const ask = (words: string[]): Promise<Said> => call(join(bare, "main.cjs"), words);
    const general = await inOrder([[], ["help"], ["--help"], ["-h"]], ask);
    for (const said of general) expect(said).toEqual({ code: 0, stdout: generalHelp(), stderr: "" });
    const versions = await inOrder([["--version"], ["-V"]], ask);
    for (const said of versions) expect(said).toEqual({ code: 0, stdout: `holdfast ${version()}\n`, stderr: "" });
    const ofRun = await inOrder(
      [
        ["run", "--help"],
        ["run", "-h"],
        ["help", "run"],
      ],
      ask,
    );
    for (const said of ofRun) expect(said.stdout).toBe(await verbHelp(await loadVerb("run")));
  });

  it("are the same texts as those of the full command, for each verb", async () => {
    const { verbs } = JSON.parse(readFileSync(join(installed.home, "dist/answers.json"), "utf8"));
    expect(Object.keys(verbs)).toEqual(VERB_NAMES);
    for (const verb of VERB_NAMES) expect(verbs[verb]).toBe(await verbHelp(await loadVerb(verb)));
  });

  it("come from the full command if there are more arguments, and so does the error for an unknown verb", async () => {
    // Each call loads the file of the verb, and must print the same text as without `-v`.
    const said = await inOrder(
      VERB_NAMES.map((verb) => [verb, "-v", "--help"]),
      (words) => call(installed.command, words),
    );
    for (const [at, verb] of VERB_NAMES.entries()) {
      expect(said[at]).toEqual({ code: 0, stdout: await verbHelp(await loadVerb(verb)), stderr: "" });
    }
    const unknown = await call(installed.command, ["constructor", "--help"]);
    expect(unknown).toMatchObject({ code: 64, stderr: expect.stringContaining('no verb "constructor"') });
  });

  it("arrive complete in a pipe that accepts only a part at first", async () => {
    const expected = await verbHelp(await loadVerb("run"));
    const said = await throughFullPipe(join(folder, "pipe"), [process.execPath, installed.command, "run", "--help"]);
    expect(said).toEqual({ code: 0, stdout: expected });
  });

  it("exit with 141 if the reader has closed the pipe, like other output", async () => {
    const words = [process.execPath, installed.command, "--help"].map((word) => `'${word}'`).join(" ");
    const child = spawn("sh", ["-c", `read go; exec ${words}`], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "exit");
    // Close the reading end before anything is written.
    child.stdout.destroy();
    await once(child.stdout, "close");
    child.stdin.write("go\n");
    expect(await ended).toEqual([141, null]);
  });
});

describe("the packed command", () => {
  it("runs without other packages, passes the token to the child, and releases the lock", async () => {
    const said = await call(installed.command, ["run", "a", "-r", redis.url, "--", "sh", "-c", "echo $HOLDFAST_TOKEN"]);
    expect(said).toMatchObject({ code: 0, stderr: "" });
    expect(Number(said.stdout)).toBeGreaterThan(0);
    const shown = await call(installed.command, ["show", "a", "-q", "-r", redis.url]);
    expect(shown.code).toBe(1);
  });

  it("exits with the child's code, and with its own codes for its own errors", async () => {
    const codes = await inOrder(
      [
        ["run", "a", "-r", redis.url, "--", "sh", "-c", "exit 7"],
        ["run", "a", "-r", redis.url, "--", "there-is-no-such-command"],
        ["run", "a", "--no-such-flag"],
        ["ls", "-r", redis.url, "--json"],
      ],
      (words) => call(installed.command, words),
    );
    expect(codes.map(({ code }) => code)).toEqual([7, 127, 64, 0]);
    expect(JSON.parse(codes[3]?.stdout ?? "")).toMatchObject({ v: 1 });
  });

  it("shows the message of an error that it cannot catch, not the whole bundle", async () => {
    const hook = join(folder, "hook.cjs");
    const isAsked = 'new Error().stack.includes("command.cjs")';
    // The hook makes the command fail before it handles uncaught exceptions, as on a Node version that is too old.
    writeFileSync(
      hook,
      `const { on } = process; Object.defineProperty(process, "on", { get: () => (${isAsked} ? undefined : on) });`,
    );
    const { code, stderr } = await call(installed.command, ["ls", "-r", redis.url], {
      NODE_OPTIONS: `--require ${hook}`,
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/dist\/command\.cjs:\d+\n.*TypeError: .* is not a function/s);
    expect(stderr.length).toBeLessThan(10_000);
  });

  it("stays below the size limit", () => {
    expect(gzipSync(readFileSync(join(installed.home, "dist/command.cjs"))).length).toBeLessThan(MOST_BYTES);
  });

  it("contains the manual page, and no sources or development dependencies", () => {
    const published = JSON.parse(readFileSync(join(installed.home, "package.json"), "utf8"));
    expect(published).toMatchObject({ name: "@holdfast/cli", bin: { holdfast: "dist/main.cjs" } });
    expect(published.devDependencies).toBeUndefined();
    // npm 11 ignores the `man` field if it is a string, so it must be an array.
    expect(published.man).toEqual(["man/holdfast.1"]);
    expect(existsSync(join(installed.home, published.man[0]))).toBe(true);
    expect(existsSync(join(installed.home, "src"))).toBe(false);
  });

  it("prints the completions of its package, and accepts common flags before the verb", async () => {
    for (const [shell, file] of Object.entries({ bash: "holdfast.bash", zsh: "_holdfast", fish: "holdfast.fish" })) {
      const said = await call(installed.command, ["--color", "never", "completion", shell]);
      const expected = readFileSync(join(installed.home, "completions", file), "utf8");
      expect(said).toEqual({ code: 0, stdout: expected, stderr: "" });
    }
    expect((await call(installed.command, ["completion", "csh"])).code).toBe(64);
  });

  it("runs the demo on the embedded store, if its dependencies are installed", async () => {
    addDependencies(folder);
    const demo = await call(installed.command, ["demo", "--for", "5s", "--workers", "2", "--json", "-q"]);
    expect(demo.stderr).toBe("");
    expect(JSON.parse(demo.stdout)).toMatchObject({ workers: 2, withLock: { duplicates: 0 } });
  });
});

describe("the code cache", () => {
  const run = (env: Readonly<Record<string, string>> = {}): Promise<Said> =>
    call(installed.command, ["run", "cached", "-r", redis.url, "--", "echo", "ran"], env);
  const clear = (): void => {
    for (const file of caches()) rmSync(join(installed.home, "dist", file));
  };
  const RAN = { code: 0, stdout: "ran\n", stderr: "" };

  it("is written after a successful run, once for each Node version, and used by the next run", async () => {
    clear();
    expect(await run()).toEqual(RAN);
    const [kept = "", ...others] = caches();
    expect(others).toEqual([]);
    expect(kept).toContain(process.version);
    const place = join(installed.home, "dist", kept);
    const before = readFileSync(place);
    expect(await run()).toEqual(RAN);
    expect(readFileSync(place).equals(before)).toBe(true);
  });

  it("is neither read nor written with NODE_DISABLE_COMPILE_CACHE", async () => {
    clear();
    expect(await run({ NODE_DISABLE_COMPILE_CACHE: "1" })).toEqual(RAN);
    expect(caches()).toEqual([]);
  });

  it("is replaced if it was damaged or truncated", async () => {
    clear();
    await run();
    const place = join(installed.home, "dist", caches()[0] ?? "");
    const whole = readFileSync(place);
    const damaged = Buffer.from(whole);
    damaged[whole.length >> 1] = (damaged[whole.length >> 1] ?? 0) ^ 0xff;
    for (const bytes of [damaged, whole.subarray(0, whole.length >> 1), Buffer.alloc(0)]) {
      writeFileSync(place, bytes);
      expect(await run()).toEqual(RAN);
      const now = readFileSync(place);
      expect(now.length).toBeGreaterThan(whole.length >> 1);
      expect(now.equals(bytes)).toBe(false);
    }
  });

  it("is complete if several commands start at the same time", async () => {
    clear();
    const said = await Promise.all(
      ["a", "b", "c", "d"].map((name) => call(installed.command, ["run", name, "-r", redis.url, "--", "echo", "ran"])),
    );
    for (const one of said) expect(one).toEqual(RAN);
    expect(caches()).toHaveLength(1);
    expect(readdirSync(join(installed.home, "dist")).filter((file) => /\.cache\./.test(file))).toEqual([]);
    expect(await run()).toEqual(RAN);
  });
});
