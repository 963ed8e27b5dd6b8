import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort, type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { readHistory } from "../../../holdfast/src/admin/index.js";
import { createHoldfast } from "../../../holdfast/src/index.js";
import { holdfast, inVain, MAIN, newFolder, start } from "../support/command.js";

let server: RedisServer;
let env: Readonly<Record<string, string>>;
let redis: Redis;
let locks: ReturnType<typeof createHoldfast>;

beforeAll(async () => {
  server = await startRedis();
  env = { HOLDFAST_REDIS: server.url };
  redis = new Redis(server.port);
  locks = createHoldfast({ redis, clientName: "api" });
});

afterAll(async () => {
  await locks.close();
  redis.disconnect();
  await server.stop();
});

describe("run exits with", () => {
  it("the command's own code, and releases the lock", async () => {
    const { code, stdout } = await holdfast(["run", "own", "--", "sh", "-c", "echo out; exit 7"], env);
    expect([code, stdout]).toEqual([7, "out\n"]);
    const lease = await locks.mutex("own").tryAcquire();
    expect(lease).not.toBeNull();
    await lease?.release();
  });

  it("128 plus the number of the signal that ended the command", async () => {
    expect((await holdfast(["run", "signalled", "-c", "kill -KILL $$"], env)).code).toBe(137);
  });

  it.each([
    ["an unknown flag", ["run", "a", "--fast", "--", "true"], "run has no flag --fast"],
    [
      "an invalid duration",
      ["run", "a", "-w", "soon", "--", "true"],
      '--wait must be a duration such as 250ms, 30s, 5m, 1h30m or a number of seconds; got "soon"',
    ],
    ["no command", ["run", "a"], "run needs a command"],
    ["no NAME", ["run", "--", "true"], "run needs the NAME of a lock"],
    [
      "a command without --",
      ["run", "a", "-n", "cp", "-n", "x y"],
      "put -- before the command: holdfast run a -n -- cp -n 'x y'",
    ],
    [
      "kinds that exclude each other",
      ["run", "a", "-s", "-N", "3", "--", "true"],
      "-s and -N are different kinds of lock",
    ],
    [
      "a --kill-after that is too long for the lease",
      ["run", "a", "--lease", "4s", "-k", "2s", "--", "true"],
      "--kill-after must be at most 1s",
    ],
    ["a lease below 3 s", ["run", "a", "--lease", "2s", "--", "true"], "--lease must be 3s to 365d"],
    [
      "a semaphore on several servers",
      ["run", "a", "-N", "3", "--redlock", "--", "true"],
      "-N does not work with --redlock",
    ],
    [
      "several URLs without their topology",
      ["run", "a", "-r", "redis://a", "-r", "redis://b", "--", "true"],
      "add --sentinel NAME, --cluster or --redlock",
    ],
    ["a descriptor that is not open", ["run", "a", "--status-fd", "9", "--", "true"], "9 is not open"],
    ["a verb that does not exist", ["lock", "a"], 'there is no verb "lock"; holdfast help lists them'],
    ["a mistyped verb", ["lss"], 'there is no verb "lss"; did you mean ls? holdfast help lists them'],
    ["a verb with two wrong letters", ["hsitory"], "did you mean history?"],
    ["a word too short to be a mistyped verb", ["ab"], 'there is no verb "ab"; holdfast help lists them'],
  ])("64 for %s", async (_, words, message) => {
    const { code, stderr } = await holdfast(words, env);
    expect(stderr).toMatch(/^holdfast: [^\n]*\n$/);
    expect(stderr).toContain(message);
    expect(code).toBe(64);
  });

  it("64 without a URL, and says how to pass one", async () => {
    const { code, stderr } = await holdfast(["run", "a", "--", "true"]);
    expect([code, stderr]).toEqual([
      64,
      expect.stringContaining("use -r redis://HOST, or set HOLDFAST_REDIS or REDIS_URL"),
    ]);
  });

  it("64 inside a run that holds the same name", async () => {
    const inner = [process.execPath, MAIN, "run", "outer"];
    const between = [process.execPath, MAIN, "run", "between", "--", ...inner, "--", "true"];
    const { code, stderr } = await holdfast(["run", "outer", "--", ...between], env);
    expect([code, stderr]).toEqual([64, expect.stringContaining('"outer" is already held by an enclosing run')]);
  });

  it("65 if the name is in use as another kind of lock", async () => {
    const mutex = await locks.mutex("kinds").acquire();
    const shared = await holdfast(["run", "kinds", "-s", "--", "true"], env);
    await mutex.release();
    expect([shared.code, shared.stderr]).toEqual([65, expect.stringContaining("kinds is in use as a mutex (held by ")]);
    const writer = await locks.readWriteLock("kinds").write.acquire();
    const plain = await holdfast(["run", "kinds", "--", "true"], env);
    await writer.release();
    expect([plain.code, plain.stderr]).toEqual([65, expect.stringContaining("add -x")]);
    expect((await holdfast(["run", "kinds", "--", "true"], env)).code).toBe(0);
  });

  it("65 if other clients use a different number of permits", async () => {
    const lease = await locks.semaphore("permits", { permits: 3 }).acquire();
    const { code, stderr } = await holdfast(["run", "permits", "-N", "4", "-n", "--", "true"], env);
    await lease.release();
    expect(code).toBe(65);
    expect(stderr).toMatch(/^holdfast: .* has \d permits, but -N is different; .*: -N \d\n$/);
    expect(stderr).not.toContain("resize");
  });

  it("69 if Redis cannot be reached, also with -n", async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const { code, stderr } = await holdfast(["run", "a", "-n", "-r", url, "--connect-timeout", "200ms", "--", "true"]);
    expect([code, stderr]).toEqual([69, expect.stringContaining("could not be reached within 200ms")]);
  });

  it("75 if the lock is held, and names the holder", async () => {
    // Ten days and half an hour, so that the time left is shown as 10d even after a long pause.
    const lease = await locks.mutex("busy").acquire({ label: "release 4.2", leaseMs: 865_800_000 });
    const [once, waited, mapped, cron] = await Promise.all([
      holdfast(["run", "busy", "-n", "--", "true"], env),
      inVain(
        () => holdfast(["run", "busy", "-w", "50ms", "--json", "--", "true"], env),
        ({ events }) => events.at(-1)?.holder !== null,
      ),
      holdfast(["run", "busy", "-n", "-E", "9", "--", "true"], env),
      holdfast(["run", "busy", "-n", "--skip-ok", "--", "true"], env),
    ]);
    await lease.release();
    expect(once.code).toBe(75);
    expect(once.stderr).toMatch(
      new RegExp(
        `^holdfast: busy is held by \\S+/${process.pid} \\(api\\) for \\S+, lease left 10d, token ${lease.token}: "release 4.2"\n$`,
      ),
    );
    expect([waited.code, waited.events.at(-1)]).toMatchObject([
      75,
      { outcome: "timeout", holder: { token: lease.token } },
    ]);
    expect(mapped.code).toBe(9);
    expect([cron.code, cron.stdout, cron.stderr]).toEqual([0, "", ""]);
  });

  it("75 if the lock is paused, and says by whom; --through-pause waits", async () => {
    await locks.pause("paused", { label: "db maintenance", by: "ana@ops-1" });
    const [once, waiting] = await Promise.all([
      holdfast(["run", "paused", "-n", "--", "true"], env),
      holdfast(["run", "paused", "--", "true"], env),
    ]);
    for (const { code, stderr } of [once, waiting]) {
      expect([code, stderr]).toEqual([
        75,
        expect.stringMatching(/paused has been paused by ana@ops-1 for \S+: "db maintenance"/),
      ]);
    }
    const patient = start(["run", "paused", "--through-pause", "--json", "--", "true"], env);
    await patient.event("waiting");
    await locks.resume("paused", { by: "ana@ops-1" });
    expect((await patient.ended).code).toBe(0);
  });

  it("75 if the command already ran in its period; with --until-success, only runs that exit with 0 count", async () => {
    const told = async (name: string): Promise<(string | undefined)[][]> => {
      const once = ["run", name, "-n", "--once-per", "1d"];
      expect((await holdfast([...once, "-c", "exit 3"], env)).code).toBe(3);
      const refused = await holdfast([...once, "--json", "--", "true"], env);
      expect([refused.code, refused.events.at(-1)]).toMatchObject([75, { outcome: "already-done", token: null }]);
      const { stderr } = await holdfast([...once, "--", "true"], env);
      expect(stderr).toMatch(/^holdfast: once\d already ran in this period \(1d\): \S+\/\d+ .*, exit 3\n$/);
      return (await readHistory(locks, { name })).map(({ outcome, reason }) => [outcome, reason]);
    };
    const success = ["run", "success", "-n", "--once-per", "week", "--until-success"];
    expect((await holdfast([...success, "--", "false"], env)).code).toBe(1);
    expect((await holdfast([...success, "--", "true"], env)).code).toBe(0);
    expect((await holdfast([...success, "--", "true"], env)).code).toBe(75);
    // A run waits only briefly until its history is written. On a slow machine, the start or the end of a run may be
    // missing.
    const isCut = (all: unknown[][]): boolean =>
      all.length < 3 || all.some(([outcome]) => outcome === "expired" || outcome === "ending");
    let entries = await told("once1");
    for (const name of ["once2", "once3"]) if (isCut(entries)) entries = await told(name);
    expect(entries).toEqual([
      ["skipped", "already-done"],
      ["skipped", "already-done"],
      ["released", undefined],
    ]);
  });

  it("77 immediately if Redis refuses the password", async () => {
    const strict = await startRedis();
    try {
      await strict.command("CONFIG", "SET", "requirepass", "open sesame");
      const url = `redis://:wr0ng-secret@127.0.0.1:${strict.port}`;
      const { code, stdout, stderr } = await holdfast(["run", "a", "-r", url, "--", "true"]);
      expect([code, stderr]).toEqual([77, expect.stringContaining("redis://:***@127.0.0.1")]);
      expect(stdout + stderr).not.toContain("wr0ng-secret");
      const folder = await newFolder();
      await writeFile(join(folder, "password"), "open sesame\n");
      const words = ["run", "a", "--password-file", join(folder, "password"), "--", "true"];
      expect((await holdfast(words, { REDIS_URL: `redis://127.0.0.1:${strict.port}` })).code).toBe(0);
    } finally {
      await strict.stop();
    }
  });

  it("124 if --max-hold ended the command, although the command exits with 0 on TERM", async () => {
    const words = [
      "run",
      "max",
      "--max-hold",
      // Longer than a shell needs to start and to set its trap on a busy machine.
      "6s",
      "--json",
      "-c",
      "trap 'exit 0' TERM; while :; do sleep 0.05; done",
    ];
    const { code, events } = await holdfast(words, env);
    expect([code, events.at(-1)]).toMatchObject([124, { outcome: "max-hold", childCode: 0 }]);
  });

  it("126 or 127 if the command cannot be started, and releases the lock immediately", async () => {
    const folder = await newFolder();
    await writeFile(join(folder, "plain"), "no program\n");
    await chmod(join(folder, "plain"), 0o644);
    expect((await holdfast(["run", "start", "--", join(folder, "plain")], env)).code).toBe(126);
    expect((await holdfast(["run", "start", "--", "no-such-command"], env)).code).toBe(127);
    expect((await holdfast(["run", "start", "-n", "--", "true"], env)).code).toBe(0);
  });

  it("0 for --help and --version, without a server", async () => {
    expect((await holdfast(["--version"])).stdout).toMatch(/^holdfast \d+\.\d+\.\d+\n$/);
    const help = await holdfast(["help", "run"]);
    expect([help.code, help.stdout]).toEqual([0, expect.stringContaining("--once-per P")]);
    expect((await holdfast(["run", "--help"])).stdout).toBe(help.stdout);
  });
});
