/** Tests a lock inside a shell script: `holdfast run NAME --until-eof` as a coprocess. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../../holdfast/src/index.js";
import { until } from "../../../holdfast/src/testing/delays.js";
import { MAIN, newFolder, numberIn, start, textIn } from "../support/command.js";

const DOCUMENT = fileURLToPath(new URL("../../../../docs/cli-scripts.md", import.meta.url));

let server: RedisServer;
let env: Readonly<Record<string, string>>;
let redis: Redis;
let locks: ReturnType<typeof createHoldfast>;

beforeAll(async () => {
  server = await startRedis();
  env = { HOLDFAST_REDIS: server.url };
  redis = new Redis(server.port);
  locks = createHoldfast({ redis });
});

afterAll(async () => {
  await locks.close();
  redis.disconnect();
  await server.stop();
});

const nightly = () => locks.mutex("nightly");

describe("the script of docs/cli-scripts.md", () => {
  const script = /^```bash\n([\s\S]*?)^```$/m.exec(readFileSync(DOCUMENT, "utf8"))?.[1] ?? "";

  /** Runs the command next to a `report.sh` with this text. */
  async function play(
    report: string,
  ): Promise<{ script: ChildProcess; ended: Promise<unknown>; file(name: string): string }> {
    const folder = await newFolder();
    const programs = {
      holdfast: `echo $$ > pid; exec ${process.execPath} ${MAIN} "$@"`,
      "report.sh": report,
      "publish.sh": 'echo "published $1" > published',
    };
    for (const [name, text] of Object.entries(programs)) {
      await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    }
    const path = `${folder}:${process.env.PATH}`;
    const child = spawn("bash", ["-c", script], { cwd: folder, env: { ...env, PATH: path }, stdio: "ignore" });
    return { script: child, ended: once(child, "exit"), file: (name) => join(folder, name) };
  }

  const tokenOf = async (file: string): Promise<number> => {
    await until(() => /^\d+\n$/.test(textIn(file) ?? ""), "the first step");
    return Number(textIn(file));
  };

  it("runs its steps under the lock, and releases it", async () => {
    const { script, ended, file } = await play('echo "$1" > token; while [ ! -e go ]; do sleep 0.05; done');
    const token = await tokenOf(file("token"));
    expect((await nightly().inspect()).holders).toMatchObject([{ token }]);
    await writeFile(file("go"), "");
    await ended;
    expect([script.exitCode, textIn(file("published"))]).toEqual([0, `published ${token}\n`]);
    expect((await nightly().inspect()).holders).toEqual([]);
  });

  it("runs nothing and exits with 75 if the lock is paused", async () => {
    await locks.pause("nightly", { by: "test", label: "maintenance" });
    const { script, ended, file } = await play('echo "$1" > token');
    await ended;
    await locks.resume("nightly", { by: "test" });
    expect([script.exitCode, textIn(file("token"))]).toEqual([75, undefined]);
  });

  it("stops before the next step if the lock was lost", async () => {
    const { script, ended, file } = await play('echo "$1" > token; while kill -0 $(cat pid); do sleep 0.05; done');
    await nightly().forceRelease({ token: await tokenOf(file("token")) });
    await ended;
    expect([script.exitCode, textIn(file("published"))]).toEqual([123, undefined]);
  });

  it("keeps the lock until its last process ends, if the script is killed", async () => {
    const { script, file } = await play('echo "$1" > token; sleep 1000 & echo $! > step; wait');
    await tokenOf(file("token"));
    script.kill("SIGKILL");
    const step = await numberIn(file("step"));
    // The step inherits the descriptor, as with flock.
    expect((await nightly().inspect()).holders).toHaveLength(1);
    process.kill(step, "SIGKILL");
    await until(async () => (await nightly().inspect()).holders.length === 0, "the release");
  });
});

it("a lost lock is reported on the second line of stdout, and the exit code is 123", async () => {
  const run = start(["run", "lost", "--until-eof"], env, "pipe", "pipe");
  await until(() => /^\d+\n$/.test(run.stdout()), "the token");
  const token = Number(run.stdout());
  await locks.mutex("lost").forceRelease({ token });
  expect((await run.ended).code).toBe(123);
  // If the release comes before the run can be notified of it, the next renewal finds out.
  await expect.poll(() => run.stdout()).toMatch(new RegExp(`^${token}\\nlost (force-released|server-lost)\\n$`));
});

describe("standard input", () => {
  it("is refused if it is /dev/null or a file", async () => {
    const folder = await newFolder();
    for (const from of ["/dev/null", MAIN]) {
      const words = [process.execPath, MAIN, "run", "no-pipe", "--until-eof"].join(" ");
      const ended = spawn("sh", ["-c", `${words} < ${from} 2> ${folder}/said`], { env, stdio: "ignore" });
      expect([await once(ended, "exit"), textIn(join(folder, "said"))]).toEqual([
        [64, null],
        expect.stringContaining("--until-eof needs a pipe"),
      ]);
    }
  });

  it("ends the wait when it closes: the run leaves the queue and reports it", async () => {
    const lease = await locks.mutex("awaited").acquire();
    const waiter = start(["run", "awaited", "--until-eof", "--json"], env, "pipe", "pipe");
    await waiter.event("waiting");
    waiter.child.stdin?.end();
    expect(await waiter.ended).toMatchObject({ code: 75, stdout: "" });
    expect(waiter.events().at(-1)).toMatchObject({ event: "result", outcome: "interrupted", token: null });
    expect((await locks.mutex("awaited").inspect()).waiterCount).toBe(0);
    await lease.release();
  });
});
