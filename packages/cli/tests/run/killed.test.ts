/** Tests what happens when `holdfast` itself is killed with KILL. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { until } from "../../../holdfast/src/testing/delays.js";
import { isRunning, newFolder, numberIn, start, textIn } from "../support/command.js";

const GUARD = new URL("../../dist/child/guard.js", import.meta.url).href;

let server: RedisServer;
let env: Readonly<Record<string, string>>;
const started: ChildProcess[] = [];

beforeAll(async () => {
  server = await startRedis();
  env = { HOLDFAST_REDIS: server.url };
});

afterAll(async () => {
  for (const child of started) child.kill("SIGKILL");
  await server.stop();
});

/** Starts a command with this HOLDFAST_OWNER, like a command that started just before `holdfast` was killed. */
async function commandOf(owner: string): Promise<number> {
  const child = spawn("sleep", ["1000"], { detached: true, stdio: "ignore", env: { ...env, HOLDFAST_OWNER: owner } });
  started.push(child);
  await once(child, "spawn");
  return child.pid as number;
}

/** Starts a process with a guard. It runs `then` with the guard, and waits to be killed. */
async function guardedBy(owner: string, then: string): Promise<ChildProcess> {
  const script = `import { Guard } from ${JSON.stringify(GUARD)};
    const plan = { owner: "${owner}", isGroup: true, stopSignal: "SIGTERM", killAfterMs: 100 };
    const guard = new Guard(plan, (message) => { throw new Error(message); });
    ${then};
    setInterval(() => process.stdout.write("ready"), 50);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(child);
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

const gone = (pid: number): Promise<void> => until(() => !isRunning(pid), `the end of ${pid}`);

describe("after holdfast was killed", () => {
  it.each([
    ["run", ["run", "killed"]],
    ["run --foreground", ["run", "killed-in-front", "--foreground"]],
    ["elect", ["elect", "killed-leader", "--delay", "0"]],
  ])("the command of %s gets TERM", async (_, words) => {
    const folder = await newFolder();
    const script = `trap 'echo ended > ${folder}/end; exit' TERM; echo $$ > ${folder}/pid; while :; do sleep 0.05; done`;
    const run = start([...words, "--", "sh", "-c", script], env);
    const pid = await numberIn(join(folder, "pid"));
    run.signal("SIGKILL");
    await gone(pid);
    expect(textIn(join(folder, "end"))).toBe("ended\n");
  });

  it("a command that ignores TERM gets KILL, and so do the processes that it started", async () => {
    const folder = await newFolder();
    const inner = join(folder, "inner.sh");
    await writeFile(inner, `echo $$ > ${folder}/inner; while :; do sleep 0.05; done`);
    const script = `trap '' TERM; sh ${inner} & echo $$ > ${folder}/pid; while :; do sleep 0.05; done`;
    const run = start(["run", "stubborn", "-k", "200ms", "-c", script], env);
    const pids = [await numberIn(join(folder, "pid")), await numberIn(join(folder, "inner"))];
    run.signal("SIGKILL");
    for (const pid of pids) await gone(pid);
  });

  it("a command has its time between TERM and KILL, even if PATH has no sleep program", async () => {
    const folder = await newFolder();
    await symlink("/bin/sh", join(folder, "sh"));
    const onTerm = `while ! [ -e ${folder}/go ]; do /bin/sleep 0.05; done; echo ended > ${folder}/end; exit`;
    const script = `trap 'echo 1 > ${folder}/term; ${onTerm}' TERM; echo $$ > ${folder}/pid; while :; do /bin/sleep 0.05; done`;
    const run = start(["run", "slow-to-end", "--lease", "5m", "-k", "2m", "-c", script], { ...env, PATH: folder });
    const pid = await numberIn(join(folder, "pid"));
    run.signal("SIGKILL");
    await numberIn(join(folder, "term"));
    await writeFile(join(folder, "go"), "");
    await gone(pid);
    expect(textIn(join(folder, "end"))).toBe("ended\n");
  });

  it("the guard finds and ends a command that was started but not yet reported, and no other", async () => {
    const holder = await guardedBy("owner/1", "");
    const [unreported, other] = await Promise.all([commandOf("owner/1"), commandOf("owner/12")]);
    holder.kill("SIGKILL");
    await gone(unreported);
    expect(isRunning(other)).toBe(true);
  });
});

it("the guard does not end a command that may run without holdfast", async () => {
  const [pid, witness] = await Promise.all([commandOf("left"), commandOf("witness")]);
  const left = await guardedBy("left", `guard.watch(${pid}); guard.dismiss()`);
  left.kill("SIGKILL");
  // When a second guard has ended its command, the first guard has had enough time as well.
  const second = await guardedBy("witness", `guard.watch(${witness})`);
  second.kill("SIGKILL");
  await gone(witness);
  expect(isRunning(pid)).toBe(true);
});
