import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../../holdfast/src/index.js";
import { holdfast, MAIN, newFolder, numberIn, start, textIn } from "../support/command.js";

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

describe("the environment of the command", () => {
  it("describes the lock, and has no variables that do not apply", async () => {
    const words = ["run", "told", "-w", "1h30m", "--lease", "20s", "--max-hold", "30d", "--json", "--", "env"];
    const { stdout, events } = await holdfast(words, { ...env, HOLDFAST_HELD: "outer", HOLDFAST_SLOT: "7" });
    const granted = events.find(({ event }) => event === "granted");
    const lines = stdout.split("\n").filter((line) => line.startsWith("HOLDFAST_"));
    const told = Object.fromEntries(lines.map((line) => line.replace("HOLDFAST_", "").split(/=(.*)/)));
    expect(told).toMatchObject({
      NAME: "told",
      KIND: "mutex",
      MODE: "exclusive",
      TOKEN: String(granted?.token),
      OWNER: granted?.owner,
      ACQUIRED_AT: String(granted?.acquiredAtMs),
      LEASE_MS: "20000",
      EXPIRES_AT: String(Number(granted?.acquiredAtMs) + 20_000),
      HARD_STOP_AT: String(Number(granted?.acquiredAtMs) + 30 * 86_400_000),
    });
    expect(stdout).toContain("HOLDFAST_HELD=outer\ntold\n");
    expect(stdout).not.toContain("HOLDFAST_SLOT");
  });

  it("has a wait of 0 if the lock was free, and the history shows no wait", async () => {
    const patient = ["run", "uncontended", "--command-timeout", "30s"];
    const { stdout } = await holdfast([...patient, "-c", "echo $HOLDFAST_WAITED_MS"], env);
    expect(stdout).toBe("0\n");
    const past = await holdfast(["history", "uncontended"], env);
    expect(past.stdout).toMatch(/^WHEN +HOLDER +WAITED .*\n\S+ \S+ +\S+ \S+ +- .* released /);
  });

  it("has the slot of a semaphore, and the mode of a read-write lock", async () => {
    const lease = await locks.semaphore("slots", { permits: 3 }).acquire();
    const slot = holdfast(["run", "slots", "-N", "3", "-c", "echo $HOLDFAST_KIND $HOLDFAST_SLOT"], env);
    expect((await slot).stdout).toBe("semaphore 1\n");
    await lease.release();
    const side = await holdfast(["run", "sides", "-s", "-c", "echo $HOLDFAST_KIND $HOLDFAST_MODE"], env);
    expect(side.stdout).toBe("read-write-lock shared\n");
  });

  it.each(["redisson", "timestamp:phpLua"])(
    "has no token for a lock in the format of another system: %s",
    async (protocol) => {
      const words = [
        "run",
        `foreign-${protocol}`,
        "--protocol",
        protocol,
        "-c",
        "echo $HOLDFAST_KIND ${HOLDFAST_TOKEN-none}",
      ];
      expect((await holdfast(words, env)).stdout).toMatch(/^(redisson.lock|timestamp) none\n$/);
    },
  );
});

describe("--json", () => {
  it("prints lines that match the schema", async () => {
    const schema: object = JSON.parse(
      readFileSync(new URL("../../../../docs/cli-run.schema.json", import.meta.url), "utf8"),
    );
    const isValid = new Ajv({ allowUnionTypes: true }).compile(schema);
    const lease = await locks.mutex("schema").acquire({ label: "x" });
    const busy = await holdfast(["run", "schema", "-n", "--json", "--", "true"], env);
    const waiter = start(["run", "schema", "--json", "-m", "y", "-c", "sleep 60 & exit 3"], env);
    await waiter.event("waiting");
    await lease.release();
    const ran = await waiter.ended;
    const events = [...busy.events, ...ran.events];
    for (const event of events) expect([event, isValid(event), isValid.errors]).toEqual([event, true, null]);
    expect(new Set(events.map(({ event }) => event))).toEqual(
      new Set(["waiting", "granted", "signalled", "child-exited", "released", "result"]),
    );
    expect(ran.events.find(({ event }) => event === "granted")?.waitedMs).toBeGreaterThan(0);
    expect(isValid({ ...ran.events.at(-1), outcome: "fine" })).toBe(false);
    for (const line of `${busy.stderr}${ran.stderr}`.trim().split("\n")) expect(line).toMatch(/^\{"v":1,.*\}$/);
  });

  it("--status-fd prints only the result, which distinguishes the command's own 75 from holdfast's", async () => {
    const folder = await newFolder();
    const shell = `"$0" "$1" run status --status-fd 3 -c 'exit 75' 3> ${folder}/status`;
    const child = spawn("sh", ["-c", shell, process.execPath, MAIN], { env: { ...process.env, ...env } });
    const [code] = await once(child, "exit");
    expect(code).toBe(75);
    expect(JSON.parse(textIn(join(folder, "status")) ?? "")).toMatchObject({
      event: "result",
      outcome: "ran",
      code: 75,
      childCode: 75,
    });
  });
});

describe("a closed reader", () => {
  it("of stderr ends neither the command nor the hold", async () => {
    const folder = await newFolder();
    const script = `echo $$ > ${folder}/pid; while [ ! -e ${folder}/end ]; do sleep 0.02; done; exit 3`;
    const run = start(["run", "unread", "--json", "-v", "-c", script], env);
    await numberIn(join(folder, "pid"));
    run.child.stderr?.destroy();
    // The shell does not catch the signal and ends. The test checks that `holdfast` survives and reports it.
    run.signal("SIGUSR2");
    expect((await run.ended).code).toBe(128 + 12);
    expect(
      await locks
        .mutex("unread")
        .tryAcquire()
        .then((lease) => lease?.release()),
    ).toBe("released");
  });

  it("of stdout ends the help without an error message", async () => {
    const child = spawn("sh", ["-c", '"$0" "$1" help run | true; echo done', process.execPath, MAIN]);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += String(data)));
    await once(child, "close");
    expect(output).toBe("done\n");
  });
});

it("--min-hold keeps the lock for this time after the grant, and the process exits immediately by extending the lease", async () => {
  const run = start(["run", "kept", "--lease", "3s", "--min-hold", "6s", "--json", "--", "true"], env);
  const { acquiredAtMs } = await run.event("granted");
  const { code, events } = await run.ended;
  expect([code, events.find(({ event }) => event === "released")]).toMatchObject([0, { outcome: "left" }]);
  const { holders } = await locks.mutex("kept").inspect();
  const untilMs = Date.now() + (holders[0]?.leaseLeftMs ?? 0) - Number(acquiredAtMs);
  expect(untilMs).toBeGreaterThan(5_900);
  expect(untilMs).toBeLessThan(8_000);
});

it("run needs no terminal, and prints nothing without one", async () => {
  expect(await holdfast(["run", "silent", "--", "true"], env)).toMatchObject({ code: 0, stdout: "", stderr: "" });
});

it("npm run build writes an executable, which npx can start in a checkout", async () => {
  const child = spawn(MAIN, ["--version"]);
  let output = "";
  child.stdout.on("data", (data) => (output += String(data)));
  const [code] = await once(child, "close");
  expect([code, output]).toEqual([0, expect.stringMatching(/^holdfast \d+\.\d+\.\d+\n$/)]);
});
