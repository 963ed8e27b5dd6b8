/**
 * Tests clients that are gone while their leases run: every list shows them, and one command releases all of their
 * locks.
 */
import { PassThrough } from "node:stream";
import { createHoldfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { beforeAll, expect, it } from "vitest";
import { until } from "../../../holdfast/src/testing/delays.js";
import { dispatch } from "../../src/frame/dispatch.js";
import { type Document, newStage } from "./harness.js";

const stage = newStage();
const HALF_AN_HOUR_MS = 1_800_000;

/** Simulates a client that held locks for half an hour and was killed eight minutes ago, as the server records it. */
async function killed(clientName: string, ...names: readonly string[]): Promise<{ id: string; leases: Lease[] }> {
  const redis = new Redis(stage.redis.url);
  redis.on("error", () => {});
  const holdfast = createHoldfast({ redis, clientName });
  const leases = [];
  for (const name of names) {
    leases.push(await holdfast.mutex(name).acquire({ leaseMs: HALF_AN_HOUR_MS, label: `job ${name}` }));
  }
  redis.disconnect();
  const [id = ""] = leases[0]?.owner.split("/") ?? [];
  const key = `hf:client:${id}`;
  const seen = Number(await stage.redis.command("HGET", key, "seen"));
  await stage.redis.command("HSET", key, "seen", `${seen - 480_000_000}`);
  return { id, leases };
}

let gone: Awaited<ReturnType<typeof killed>>;
beforeAll(async () => {
  gone = await killed("reports", "report:1", "report:2");
  await stage.holdfast.mutex("fine").acquire({ leaseMs: HALF_AN_HOUR_MS });
});

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command in this process, because starting a process takes seconds on a busy machine. */
async function say(...words: readonly string[]): Promise<Said> {
  return await run(words, {}, "");
}

/** Like `say`, on a terminal of 100 columns with this typed input. */
async function atTerminal(typed: string, ...words: readonly string[]): Promise<Said> {
  return await run(words, { isTTY: true, columns: 100 }, typed);
}

async function ask(...words: readonly string[]): Promise<Document & Record<"clients" | "deadlocks", object[]>> {
  const { stdout } = await say(...words, "--json");
  return JSON.parse(stdout);
}

async function run(words: readonly string[], tty: object, typed: string): Promise<Said> {
  const said = { stdout: "", stderr: "" };
  const sink = (name: keyof typeof said): PassThrough => {
    const stream = Object.assign(new PassThrough(), tty);
    return stream.on("data", (text) => {
      said[name] += text;
    });
  };
  const stdin = Object.assign(new PassThrough(), tty);
  stdin.end(typed);
  const env = { HOLDFAST_REDIS: stage.redis.url, HOLDFAST_COLOR: "never", ...PATIENT };
  const code = await dispatch(words, { stdin, stdout: sink("stdout"), stderr: sink("stderr"), env }, () => "0");
  return { code, ...said };
}

/** Long timeouts, because the tests do not check how fast a server replies. */
const PATIENT = { HOLDFAST_CONNECT_TIMEOUT: "60s", HOLDFAST_COMMAND_TIMEOUT: "30s" };

it("ls, show and top say how long the holder has been gone and when its lease ends; --gone lists only such locks", async () => {
  const [listed, only, shown, top] = [
    await say("ls", "-o", "name,state,gone,left", "--no-headings"),
    await ask("ls", "--gone"),
    await say("show", "report:1"),
    await say("top", "--once"),
  ];
  expect(listed.stdout).toMatch(/^report:1 +held, gone for \d+m\S* +\d+m\S* +\d+m\S*$/m);
  expect(listed.stdout).toMatch(/^fine +held +- +\d+m\S*$/m);
  expect(only.locks).toMatchObject([
    { name: "report:1", holders: [{ app: "reports", goneSinceAtMs: expect.any(Number) }] },
    { name: "report:2" },
  ]);
  expect(shown.stdout).toMatch(
    /its client has been gone for \d+m\S*, and its lease ends in \d+m\S*: holdfast release report:1 --token \d+ -m WHY/,
  );
  expect(top.stdout).toMatch(/^report:2 .*held, gone for \d+m/m);
});

it("a refused run says that the holder is gone and how to free the lock", async () => {
  const { code, stderr } = await stage.say("run", "report:1", "-n", "--", "true");
  const [lease] = gone.leases;
  expect(code).toBe(75);
  expect(stderr).toMatch(/the holder of report:1: its client has been gone for \d+m\S*, and its lease ends in \d+m/);
  expect(stderr).toContain(`To free it now: holdfast release report:1 --token ${lease?.token} -m WHY`);
  expect((await stage.say("run", "fine", "-n", "--", "true")).stderr).not.toContain("gone");
});

it("ls --late lists locks with less than half of the lease left", async () => {
  const lease = await stage.client("slow").mutex("slow").acquire({ leaseMs: HALF_AN_HOUR_MS });
  await stage.redis.command("PEXPIRE", "hf:mutex:{slow}", String(HALF_AN_HOUR_MS / 3));
  expect((await ask("ls", "--late")).locks).toMatchObject([{ name: "slow", holders: [{ owner: lease.owner }] }]);
  await lease.release();
});

it("clients lists what each client holds and which clients are gone; --gone lists only those that still hold or wait", async () => {
  const { stdout, stderr } = await say("clients");
  expect(stdout).toMatch(new RegExp(`^${gone.id} .* reports .*gone for \\d+m\\S* +2 +0 `, "m"));
  expect(stdout).toMatch(/ tests .* alive +1 +0 /);
  expect(stderr).toContain(`${gone.id} is gone and holds 2 locks: holdfast release --client ${gone.id} -m WHY`);
  const document = await ask("clients", "--gone");
  expect(document.clients).toMatchObject([
    { clientId: gone.id, isGone: true, held: [{ name: "report:1" }, { name: "report:2" }], waits: [] },
  ]);
});

it("clients calls a client idle if it neither holds nor waits, and unknown if it has no record; neither is gone", async () => {
  const lease = await stage.client("idle").mutex("was held").acquire({ leaseMs: HALF_AN_HOUR_MS });
  const [idle = ""] = lease.owner.split("/");
  await lease.release();
  const record = `hf:client:${idle}`;
  await until(async () => (await stage.redis.command("HGET", record, "seen")) !== null, "it has a record");
  await stage.redis.command("HINCRBY", record, "seen", "-480000000");
  const unknown = "AAAAAAAAAAAAAAAB";
  const owner = lease.owner.replace(idle, unknown);
  await stage.redis.command("SET", "hf:mutex:{unknown}", owner, "PX", String(HALF_AN_HOUR_MS));

  const { stdout, stderr } = await say("clients");
  expect(stdout).toMatch(new RegExp(`^${idle} .* idle +0 +0 `, "m"));
  expect(stdout).toMatch(new RegExp(`^${unknown} .* unknown +1 +0 `, "m"));
  expect(stderr).not.toContain(idle);
  expect(stderr).not.toContain(unknown);
  const { clients } = await ask("clients");
  expect(clients).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ clientId: idle, isGone: false }),
      expect.objectContaining({ clientId: unknown, isGone: false, lastSeenAtMs: null, protocol: null }),
    ]),
  );
  expect((await ask("clients", "--gone")).clients).toHaveLength(1);

  const refused = await say("release", "--client", unknown, "-m", "why", "--yes");
  expect([refused.code, refused.stderr]).toEqual([
    64,
    expect.stringContaining("has no record, so it is not known to be gone. Check that its process has ended, or add"),
  ]);
  await stage.redis.command("DEL", "hf:mutex:{unknown}");
});

it("clients shows the protocol of each client in a column if they differ, and always in JSON", async () => {
  expect((await say("clients")).stdout).not.toContain("PROTOCOL");
  const { clients } = await ask("clients", "--gone");
  expect(clients).toMatchObject([{ clientId: gone.id, protocol: 1 }]);
  await stage.redis.command("HSET", `hf:client:${gone.id}`, "protocol", "2");
  try {
    const { stdout } = await say("clients");
    expect(stdout).toMatch(/ PROTOCOL +VERSION$/m);
    expect(stdout).toMatch(new RegExp(`^${gone.id} .* 2 +0 +2 +0\\.\\d`, "m"));
    expect((await ask("clients", "--gone")).clients).toMatchObject([{ clientId: gone.id, protocol: 2 }]);
  } finally {
    await stage.redis.command("HSET", `hf:client:${gone.id}`, "protocol", "1");
  }
});

it("release --client shows the locks, and refuses without a terminal or --yes, and for a live client without --force", async () => {
  const without = await say("release", "--client", gone.id, "-m", "killed");
  expect(without.code).toBe(64);
  expect(without.stderr).toMatch(/holds 2 locks\.\nNAME .*\nreport:1 .*\nreport:2 .*\nholdfast: .*add --yes\n$/);
  const [alive = ""] = (await stage.holdfast.mutex("fine").inspect()).holders.map(({ owner }) => owner.split("/")[0]);
  const living = await say("release", "--client", alive, "-m", "why", "--yes");
  expect([living.code, living.stderr]).toEqual([
    64,
    expect.stringContaining("is alive and may still be using these locks"),
  ]);
  expect(await stage.holdfast.mutex("fine").inspect()).toMatchObject({ holders: [{ label: undefined }] });
  expect((await say("release", "--client", "nobody", "-m", "why", "--yes")).code).toBe(1);
});

it("release --client asks for the number of locks, releases them all, and records it in the history", async () => {
  const wrong = await atTerminal("1\n", "release", "--client", gone.id, "-m", "killed");
  expect([wrong.code, wrong.stdout]).toEqual([1, "nothing was released\n"]);
  const right = await atTerminal("2\n", "release", "--client", gone.id, "-m", "killed");
  expect([right.code, right.stdout]).toEqual([0, `released 2 of 2 locks of ${gone.id}\n`]);
  expect(right.stderr).toContain("Type the number to confirm");
  expect((await say("show", "report:1", "-q")).code).toBe(1);
  const { history } = await ask("history", "--name-part", "port:1", "--outcome", "forced");
  expect(history).toMatchObject([{ name: "report:1", outcome: "forced", reason: "killed" }]);
});

it("ls --deadlocks and the doctor report two clients that wait for each other, with the command that ends it", async () => {
  const [a, b] = [stage.client("a"), stage.client("b")];
  await a.mutex("orders").acquire({ leaseMs: HALF_AN_HOUR_MS, label: "order 7" });
  const second = await b.mutex("stock").acquire({ leaseMs: HALF_AN_HOUR_MS });
  await stage.queueUp(a, "stock", "order 7");
  await stage.queueUp(b, "orders", "recount");
  const listed = await say("ls", "--deadlocks");
  expect(listed.stdout).toMatch(/^possible deadlock for \S+: 2 clients wait for each other\n/);
  expect(listed.stdout).toMatch(
    /holds {5}orders \(mutex\) for \S+, lease left .*: "order 7"\n {4}waits for stock \(mutex\) for \S+: /,
  );
  const release = `holdfast release stock --token ${second.token} -m WHY`;
  expect(listed.stdout).toContain(`to end it: ${release}`);
  const document = await ask("ls", "--deadlocks");
  expect(document.deadlocks).toMatchObject([{ release, members: [{ app: "b" }, { app: "a" }] }]);
  const doctor = await say("doctor", "--only", "deadlocks", "--for", "60s");
  expect(doctor.stdout).toMatch(/WARNING\n {2}deadlocks {2}all: possible deadlock for \S+: .* a holds orders/);
  expect(doctor.stdout).toContain(release);
  await say(...release.split(" ").slice(1));
  await until(async () => (await say("ls", "--deadlocks")).stdout === "no possible deadlocks\n", "it has ended");
});

it("a long name is shortened on a terminal to leave room for other columns, and is complete in a pipe", async () => {
  const name = "n".repeat(440);
  const lease = await stage.holdfast.mutex(name).acquire();
  const { stdout: out } = await atTerminal("", "ls", "n*", "--no-headings");
  expect(out).toMatch(/^n{39}… {2}mutex {2}held {2}/);
  expect((await say("ls", "n*", "--no-headings")).stdout).toContain(name);
  const top = await atTerminal("", "top", "n*", "--once");
  expect(top.stdout).toMatch(/^n{39}… {2}mutex {2}held {2}/m);
  await lease.release();
});

it("ls --limit with --sort shows the first of all locks, and says how many are not shown", async () => {
  const many = stage.client("many");
  const oldest = await many.mutex("z:oldest").acquire();
  const leases = await Promise.all(Array.from({ length: 60 }, (_, i) => many.mutex(`z:${i}`).acquire()));
  const { stdout, stderr } = await say("ls", "z:*", "--sort", "since", "--limit", "3", "-o", "name", "--no-headings");
  const names = stdout.trimEnd().split("\n");
  expect([names.length, names[0]]).toEqual([3, "z:oldest"]);
  expect(stderr).toContain("58 more locks match; raise --limit to show them");
  await Promise.all([oldest, ...leases].map((lease) => lease.release()));
});

it("ls --sort does not advise a larger --limit if it is already the largest", async () => {
  const each = (command: string) =>
    stage.redis.command("EVAL", `for i = 1, 10001 do local key = 'hf:mutex:{huge:' .. i .. '}' ${command} end`, "0");
  await each("redis.call('SET', key, '0000000000000000/1/600000/1', 'PX', 600000)");
  const { stderr } = await say("ls", "huge:*", "--sort", "since", "--limit", "10000", "-o", "name");
  expect(stderr).toContain("1 more lock matches; use a narrower PATTERN, or omit --sort for pages, to show it");
  await each("redis.call('DEL', key)");
});

it("show prints permits for a semaphore, and does not mention readers", async () => {
  const pool = (who: string) => stage.client(who).semaphore("pool", { permits: 1 });
  const held = await pool("one").acquire();
  const wait = new AbortController();
  pool("two")
    .acquire({ waitMs: HALF_AN_HOUR_MS, signal: wait.signal })
    .catch(() => {});
  await until(async () => (await pool("three").inspect()).waiterCount === 1, "it waits");
  const { stdout } = await say("show", "pool");
  expect(stdout).not.toMatch(/read/);
  expect(stdout).toMatch(/lease left \S+, 1 permit, slot 0/);
  expect(stdout).toMatch(/^ +1 .* two .* 1 permit /m);
  wait.abort();
  await held.release();
});

it("release --client says that it has not looked at all locks, if there are very many", {
  timeout: 300_000,
}, async () => {
  const { owner } = await stage.holdfast.mutex("many:first").acquire({ leaseMs: HALF_AN_HOUR_MS });
  const [key = ""] = (await stage.redis.command("KEYS", "*mutex:{many:first}")) as string[];
  const fill = `for n = 1, 105000 do
    redis.call('SET', (string.gsub(KEYS[1], 'first', tostring(n))), ARGV[1], 'PX', ${HALF_AN_HOUR_MS})
  end`;
  await stage.redis.command("EVAL", fill, "1", key, owner);
  const { code, stderr } = await say("release", "--client", "AAAAAAAAAAAAAAAA", "-m", "host is lost", "--yes");
  expect(code).toBe(1);
  expect(stderr).toContain("stopped after 100,000 locks, so the list is incomplete");
});
