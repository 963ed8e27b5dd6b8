import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { startProxy } from "../../../../tests/support/tcp-proxy.js";
import { createHoldfast } from "../../../holdfast/src/index.js";
import { sleep, until, withLeaseInTime } from "../../../holdfast/src/testing/delays.js";
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

/** The timeout of a test that is repeated with longer leases if the machine was too slow. */
const LONG_PLAYS_MS = 240_000;

/**
 * Returns the owner id of the holder, once the holder listens for force-releases, which is a moment after the grant.
 */
async function holderOf(name: string): Promise<string> {
  const [holder] = (await locks.mutex(name).inspect()).holders;
  const owner = holder?.owner ?? "";
  const inbox = `hf:in:${owner.split("/")[0]}`;
  await until(async () => Number((await redis.pubsub("NUMSUB", inbox))[1]) === 1, `a listener at ${inbox}`);
  return owner;
}

/**
 * A program that records when it starts, when it was last alive, and when it was asked to end, in ms. It ends only when
 * it is killed.
 */
function stubborn(folder: string): string {
  return `const { renameSync, writeFileSync } = require("node:fs");
    // Whole or not at all: it is killed at any moment.
    const write = (file) => {
      writeFileSync("${folder}/next", Date.now() + "\\n");
      renameSync("${folder}/next", "${folder}/" + file);
    };
    process.on("SIGTERM", () => write("term"));
    setInterval(() => write("alive"), 5);
    write("alive");
    writeFileSync("${folder}/pid", process.pid + "\\n");`;
}

describe("before the lock can be granted to another client, the command", () => {
  it.concurrent(
    "gets TERM at D-k-m and KILL at D-m if Redis does not reply, and run exits with 123",
    { timeout: LONG_PLAYS_MS },
    () =>
      withLeaseInTime(async (leaseMs) => {
        const folder = await newFolder();
        const proxy = await startProxy(server.port);
        try {
          const name = `deaf-${leaseMs}`;
          const k = leaseMs / 5;
          const flags = ["--lease", `${leaseMs}ms`, "-k", `${k}ms`, "--json"];
          const run = start(["run", name, ...flags, "--", process.execPath, "-e", stubborn(folder)], {
            HOLDFAST_REDIS: `redis://127.0.0.1:${proxy.port}`,
          });
          await numberIn(join(folder, "pid"));
          proxy.stall();
          // The next holder connects to the server directly, so it is granted as soon as the lease has ended there.
          const next = await locks.mutex(name).acquire({ waitMs: leaseMs + 20_000 });
          const startedAtMs = Date.now();
          const { code, events } = await run.ended;
          expect(code).toBe(123);
          const [aliveAtMs, termAtMs] = ["alive", "term"].map((file) => Number(textIn(join(folder, file)))) as [
            number,
            number,
          ];
          expect(aliveAtMs).toBeLessThan(startedAtMs);
          // TERM comes k plus the margin before the end of the lease. How long the program is alive after that depends on
          // the machine.
          expect(aliveAtMs).toBeGreaterThan(termAtMs);
          expect(termAtMs).toBeLessThan(startedAtMs - k);
          expect(events.filter(({ event }) => event === "signalled")).toMatchObject([
            { signal: "SIGTERM", why: "lost" },
            { signal: "SIGKILL", why: "lost" },
          ]);
          expect(events.find(({ event }) => event === "lost")).toMatchObject({
            reason: "unconfirmed",
            sent: "SIGTERM",
          });
          expect(events.some(({ event }) => event === "at-risk")).toBe(true);
          expect(events.at(-1)).toMatchObject({ outcome: "lost", code: 123, childSignal: "SIGKILL" });
          expect(startedAtMs - aliveAtMs).toBeLessThan(leaseMs);
          await next.release();
        } finally {
          await proxy.close();
        }
      }, 4_000),
  );

  it.concurrent("gets no signal if Redis replies again in time", { timeout: LONG_PLAYS_MS }, () =>
    withLeaseInTime(async (leaseMs) => {
      const folder = await newFolder();
      const proxy = await startProxy(server.port);
      try {
        const script = `trap 'exit 9' TERM; echo $$ > ${folder}/pid; while [ ! -e ${folder}/end ]; do sleep 0.02; done`;
        const words = ["run", `back-${leaseMs}`, "--lease", `${leaseMs}ms`, "--json", "-c", script];
        const run = start(words, { HOLDFAST_REDIS: `redis://127.0.0.1:${proxy.port}` });
        await numberIn(join(folder, "pid"));
        proxy.stall();
        await run.event("at-risk");
        proxy.resume();
        // Wait longer than the lease would have lasted.
        await sleep(0.75 * leaseMs);
        await writeFile(join(folder, "end"), "");
        const { code, events } = await run.ended;
        expect([code, events.filter(({ event }) => event === "signalled")]).toEqual([0, []]);
      } finally {
        await proxy.close();
      }
    }, 6_000),
  );

  it.concurrent("is ended as soon as a holdfast that was frozen for longer than the lease continues, with 123", async () => {
    const folder = await newFolder();
    const words = [
      "run",
      "frozen",
      "--lease",
      "3s",
      "-k",
      "100ms",
      "--json",
      "--",
      process.execPath,
      "-e",
      stubborn(folder),
    ];
    const run = start(words, env);
    const pid = await numberIn(join(folder, "pid"));
    run.signal("SIGSTOP");
    const next = await locks.mutex("frozen").acquire({ waitMs: 20_000 });
    expect(isRunning(pid)).toBe(true);
    run.signal("SIGCONT");
    const { code, events } = await run.ended;
    expect([code, isRunning(pid)]).toEqual([123, false]);
    expect(events.find(({ event }) => event === "lost")).toMatchObject({ reason: "expired", validForMs: 0 });
    await next.release();
  });

  it.concurrent("gets TERM immediately after a forced release, and run prints who did it and why, and exits with 123", async () => {
    const folder = await newFolder();
    const script = `trap 'exit 0' TERM; echo $$ > ${folder}/pid; while :; do sleep 0.02; done`;
    const run = start(["run", "forced", "-c", script], env);
    await numberIn(join(folder, "pid"));
    const owner = await holderOf("forced");
    const forcedAtMs = Date.now();
    expect(await locks.mutex("forced").forceRelease({ owner, by: "ana@ops-1", reason: "hung" })).toBe(true);
    const { code, stderr } = await run.ended;
    // Without the notification, only a renewal after 10 s would find out.
    expect(Date.now() - forcedAtMs).toBeLessThan(1_000 + 5_000);
    expect(code).toBe(123);
    // The shell may print a message too.
    expect(stderr).toContain('holdfast: LOST forced: released by force by ana@ops-1: "hung"; sent TERM\n');
  });
});

describe("after a loss", () => {
  it.concurrent("a signal is still forwarded, and run exits with 123", async () => {
    const folder = await newFolder();
    const script = `trap 'echo term >> ${folder}/term' TERM; trap 'exit 0' USR1; echo $$ > ${folder}/pid; while :; do sleep 0.02; done`;
    const run = start(["run", "after", "-k", "5s", "--lease", "20s", "-c", script], env);
    await numberIn(join(folder, "pid"));
    await locks.mutex("after").forceRelease({ owner: await holderOf("after") });
    await until(() => textIn(join(folder, "term")) === "term\n", "TERM");
    run.signal("SIGUSR1");
    expect((await run.ended).code).toBe(123);
  });

  it.concurrent("--on-lost ignore warns, lets the command run, and exits with its code", async () => {
    const folder = await newFolder();
    const script = `trap 'exit 9' TERM; echo $$ > ${folder}/pid; while [ ! -e ${folder}/end ]; do sleep 0.02; done; exit 4`;
    const run = start(["run", "ignored", "--on-lost", "ignore", "-c", script], env);
    await numberIn(join(folder, "pid"));
    await locks.mutex("ignored").forceRelease({ owner: await holderOf("ignored") });
    await until(() => run.stderr().includes("LOST ignored: released by force\n"), "the warning");
    await writeFile(join(folder, "end"), "");
    expect((await run.ended).code).toBe(4);
  });

  it.concurrent("--on-lost signal:USR2 sends USR2, and then KILL", async () => {
    const folder = await newFolder();
    const script = `trap '' TERM; trap 'echo usr2 > ${folder}/usr2' USR2; echo $$ > ${folder}/pid; while :; do sleep 0.02; done`;
    const run = start(["run", "usr2", "--on-lost", "signal:USR2", "-k", "1s", "-c", script], env);
    await numberIn(join(folder, "pid"));
    await locks.mutex("usr2").forceRelease({ owner: await holderOf("usr2") });
    expect((await run.ended).code).toBe(123);
    expect(textIn(join(folder, "usr2"))).toBe("usr2\n");
  });
});
