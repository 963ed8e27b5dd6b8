import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../../holdfast/src/index.js";
import { until } from "../../../holdfast/src/testing/delays.js";
import { isRunning, newFolder, numberIn, start, textIn } from "../support/command.js";

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

describe("a run that waits", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
    ["SIGQUIT", 131],
  ] as const)("leaves the queue on %s, and exits with %i", async (signal, code) => {
    const name = `wait-${signal}`;
    const lease = await locks.mutex(name).acquire();
    const waiter = start(["run", name, "--json", "--", "true"], env);
    await waiter.event("waiting");
    waiter.signal(signal);
    const ended = await waiter.ended;
    expect([ended.code, ended.events.at(-1)]).toMatchObject([code, { outcome: "interrupted", token: null }]);
    expect((await locks.mutex(name).inspect()).waiterCount).toBe(0);
    await lease.release();
  });
});

describe("run forwards", () => {
  it.each(["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"])("%s to the command, each time", async (word) => {
    const folder = await newFolder();
    const heard = join(folder, "heard");
    const script = `trap 'echo heard >> ${heard}' ${word}; echo $$ > ${folder}/pid; n=0; while [ $n -lt 2 ]; do sleep 0.02; n=$(cat ${heard} 2>/dev/null | wc -l); done; exit 5`;
    const run = start(["run", `pass-${word}`, "-c", script], env);
    await numberIn(join(folder, "pid"));
    run.signal(`SIG${word}` as NodeJS.Signals);
    await until(() => textIn(heard) === "heard\n", "the first signal");
    run.signal(`SIG${word}` as NodeJS.Signals);
    expect((await run.ended).code).toBe(5);
  });

  it("TERM without a later KILL, and renews the lock until the command ends", async () => {
    const folder = await newFolder();
    // Longer than the grace period and the lease.
    const script = `trap 'sleep 6.5; exit 6' TERM; echo $$ > ${folder}/pid; while :; do sleep 0.02; done`;
    const run = start(["run", "patient", "--lease", "6s", "-c", script], env);
    await numberIn(join(folder, "pid"));
    run.signal("SIGTERM");
    expect((await run.ended).code).toBe(6);
  });

  it("TERM, and sends KILL after the time of -k", async () => {
    const folder = await newFolder();
    const script = `trap '' TERM; echo $$ > ${folder}/pid; while :; do sleep 0.02; done`;
    const run = start(["run", "impatient", "-k", "200ms", "--json", "-c", script], env);
    const pid = await numberIn(join(folder, "pid"));
    run.signal("SIGTERM");
    const { code, events } = await run.ended;
    expect([code, isRunning(pid)]).toEqual([137, false]);
    expect(events.filter(({ event }) => event === "signalled")).toMatchObject([
      { signal: "SIGTERM", why: "forwarded" },
      { signal: "SIGKILL", why: "forwarded" },
    ]);
  });
});

describe("a process that the command leaves running", () => {
  // A shell that ignores TERM passes this on to the processes that it starts.
  const leaves = (folder: string): string =>
    `(trap '' TERM; sh -c 'echo $$ > ${folder}/pid; while :; do sleep 0.05; done') & while [ ! -s ${folder}/pid ]; do sleep 0.01; done; exit 3`;

  it("is ended before the lock is released, even if it ignores TERM", async () => {
    const folder = await newFolder();
    const run = start(["run", "left", "-k", "200ms", "--json", "-c", leaves(folder)], env);
    await run.event("child-exited");
    const next = await locks.mutex("left").acquire();
    expect(isRunning(await numberIn(join(folder, "pid")))).toBe(false);
    await next.release();
    const { code, events } = await run.ended;
    expect(code).toBe(3);
    expect(events.filter(({ event }) => event === "signalled")).toMatchObject([
      { signal: "SIGTERM", why: "left-over" },
      { signal: "SIGKILL", why: "left-over" },
    ]);
  });

  it("continues with --leave-group", async () => {
    const folder = await newFolder();
    expect((await start(["run", "leave", "--leave-group", "-c", leaves(folder)], env).ended).code).toBe(3);
    const pid = await numberIn(join(folder, "pid"));
    expect(isRunning(pid)).toBe(true);
    process.kill(pid, "SIGKILL");
  });
});

it("--foreground keeps the command in holdfast's process group, and signals only the command", async () => {
  const folder = await newFolder();
  const script = `ps -o pgid= -p $$ > ${folder}/group; trap 'exit 4' TERM; echo $$ > ${folder}/pid; while :; do sleep 0.02; done`;
  const run = start(["run", "front", "--foreground", "-c", script], env);
  const pid = await numberIn(join(folder, "pid"));
  expect(Number(textIn(join(folder, "group")))).not.toBe(pid);
  run.signal("SIGTERM");
  expect((await run.ended).code).toBe(4);
});

it("--hold prints the lease, holds the lock until INT or TERM, and then exits with 0", async () => {
  const run = start(["run", "held", "--hold", "--json"], env);
  const { token } = await run.event("granted");
  expect(await locks.mutex("held").tryAcquire()).toBeNull();
  run.signal("SIGTERM");
  const { code, stdout, events } = await run.ended;
  expect([code, JSON.parse(stdout), events.at(-1)]).toMatchObject([
    0,
    { v: 1, name: "held", token },
    { outcome: "ran" },
  ]);
  const next = await locks.mutex("held").tryAcquire();
  expect(next).not.toBeNull();
  await next?.release();
});
