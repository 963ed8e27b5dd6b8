/** Tests the verbs on three independent servers: what they print, and what they refuse. */
import { createHoldfast, LeaseLostError } from "holdfast";
import { appendHistory } from "holdfast/admin";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { nodesAt, type Place, placeOf, throughConsole } from "./place.js";

const WAIT = { timeout: 60_000, interval: 20 };

let servers: readonly RedisServer[];
let place: Place;
beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  place = placeOf({
    ports: servers.map(({ port }) => port),
    env: { HOLDFAST_REDLOCK: "1" },
    clients: servers.map(({ url }) => new Redis(url)),
    isQuorum: true,
    stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  });
  // Servers that have just started grant nothing until the lease of the first request would have ended. Send a request
  // with a short lease first, so that this wait is short for all tests.
  const first = await place.say("run", "first", "--lease", "3s", "-w", "120s", "--", "true");
  if (first.code !== 0) throw new Error(first.stderr);
});
afterAll(async () => {
  // Restart the stopped server, because a Holdfast that closes waits for a silent server.
  await servers[2]?.restart();
  await place?.close();
});

function escaped(text: string): string {
  return text.replace(/[.()]/g, "\\$&");
}

describe("on independent servers", () => {
  it("ls, show, top, the console and a refused run show the lock, release frees it, and history shows the release", async () => {
    const { holdfast, say, ask } = place;
    const lease = await holdfast.redlock("deploy").acquire({ label: "release 4.2", leaseMs: 300_000, waitMs: 60_000 });
    const holder = { app: "tests", pid: process.pid, token: lease.token, owner: lease.owner, label: "release 4.2" };
    const [listed, shown, page, held, free, refused, top, console] = await Promise.all([
      ask("ls"),
      ask("show", "deploy"),
      say("show", "deploy"),
      say("show", "deploy", "-q"),
      say("show", "nothing", "-q"),
      say("run", "deploy", "-n", "--", "true"),
      ask("top", "--once"),
      throughConsole(place, "api/locks"),
    ]);
    expect(listed).toMatchObject({
      locks: [{ name: "deploy", kind: "redlock", state: "held", holders: [holder] }],
      unreachable: 0,
    });
    expect(shown).toMatchObject({ kind: "redlock", state: "held", holders: [holder], queue: [] });
    expect(page.stdout).toMatch(/^deploy: redlock, held\n/);
    expect([held.code, free.code]).toEqual([0, 1]);
    expect([refused.code, refused.stderr]).toEqual([
      75,
      expect.stringMatching(/^holdfast: deploy is held by .*"release 4\.2"/),
    ]);
    expect(top).toMatchObject({ isComplete: true, locks: [{ name: "deploy", kind: "redlock", holder }] });
    expect([console.code, console.answer.rows]).toMatchObject([0, [{ name: "deploy", kind: "redlock" }]]);

    const wrong = await say("release", "deploy", "--token", String(lease.token - 1), "-m", "why");
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringContaining("nothing was released")]);
    const words = ["release", "deploy", "--force", "--yes", "-m", "wrong build"];
    expect(await ask(...words)).toMatchObject({ released: true, holder, next: null });
    await vi.waitFor(() => expect(lease.signal.reason).toBeInstanceOf(LeaseLostError), WAIT);
    // The history of the run itself may be missing on a busy machine, because a run waits at most half a second to
    // write it.
    expect((await ask("history", "deploy", "--outcome", "forced")).history).toMatchObject([
      { outcome: "forced", reason: "wrong build", token: lease.token },
    ]);
  });

  it("a deadlock of locks on one of the servers gets no release command, but the way to release the lock", async () => {
    const { say, ask } = place;
    const single = {
      redis: new Redis((servers[0] as RedisServer).url),
      failoverGrace: "off",
      leaseMs: 600_000,
    } as const;
    const [ci, api] = [createHoldfast(single), createHoldfast(single)];
    const over = new AbortController();
    try {
      await Promise.all([ci.mutex("orders").acquire(), api.mutex("stock").acquire()]);
      const wait = { waitMs: Infinity, signal: over.signal };
      const waits = Promise.allSettled([ci.mutex("stock").acquire(wait), api.mutex("orders").acquire(wait)]);
      const isSeen = async (): Promise<void> => expect((await ask("ls", "--deadlocks")).deadlocks).toHaveLength(1);
      await vi.waitFor(isSeen, { timeout: 120_000, interval: 20 });
      const server = `127.0.0.1:${(servers[0] as RedisServer).port}`;
      const claims = { holds: { server }, waits: { server } };
      expect((await ask("ls", "--deadlocks")).deadlocks).toMatchObject([{ release: null, members: [claims, claims] }]);
      const [listed, doctor, locks, refused] = await Promise.all([
        say("ls", "--deadlocks"),
        say("doctor", "--only", "deadlocks", "--for", "60s"),
        ask("ls", "--kind", "mutex"),
        say("release", "stock", "--force", "--yes", "-m", "why"),
      ]);
      const way = `which is a lock on a single server (${server}), not on all servers of --redlock. Use -r with that server alone`;
      for (const { stdout } of [listed, doctor]) {
        expect(stdout).toMatch(new RegExp(`release (?:orders|stock), ${escaped(way)}$`, "m"));
        expect(stdout).not.toContain("holdfast release");
      }
      expect(listed.stdout).toMatch(new RegExp(`holds     (?:orders|stock) \\(mutex\\) on ${escaped(server)} for `));
      expect(doctor.stdout).toMatch(/to lose the least work, release (?:orders|stock), /);
      const seen = { needsTopology: "single-server", onServers: [server] };
      expect(locks.locks).toMatchObject([seen, seen]);
      expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining(`on a single server (${server})`)]);
      over.abort();
      await waits;
    } finally {
      over.abort();
      await Promise.all([ci.close(), api.close()]);
      single.redis.disconnect();
    }
  });

  it("--once-per refuses a second run in a period, and history lists it", async () => {
    const words = ["run", "job", "-w", "60s", "--once-per", "1h", "--", "true"];
    expect((await place.say(...words)).code).toBe(0);
    const second = await place.say(...words);
    expect([second.code, second.stderr]).toEqual([75, expect.stringContaining("already ran in this period")]);
    await appendHistory(place.holdfast, { what: "skipped", kind: "redlock", name: "job", reason: "told here" });
    const { history } = await place.ask("history", "job", "--outcome", "skipped");
    expect(history).toEqual(
      expect.arrayContaining([expect.objectContaining({ kind: "redlock", reason: "told here" })]),
    );
  });

  it("pause and elect exit with 64, and the command that the error of pause suggests works", async () => {
    const pause = await place.say("pause", "nightly", "-m", "db maintenance");
    expect(pause.code).toBe(64);
    expect(pause.stderr).toMatch(
      /^holdfast: pause does not work with --redlock: .*with independent servers there is no such server/,
    );
    expect(pause.stderr).toContain("holdfast run nightly --redlock --hold -m WHY");
    expect(await place.say("resume", "nightly")).toMatchObject({ code: 1, stdout: "nightly is not paused\n" });
    for (const mode of [["--who"], ["--listen"], ["--resign", "--token", "7"], ["--", "true"]]) {
      const elect = await place.say("elect", "feed", ...mode);
      expect([elect.code, elect.stderr]).toEqual([
        64,
        expect.stringContaining("holdfast run NAME --redlock -- command"),
      ]);
    }
    const hold = place.start("run", "nightly", "--hold", "-m", "db maintenance", "--lease", "5m", "--json");
    await hold.event("granted");
    const refused = await place.say("run", "nightly", "-n", "--", "true");
    expect([refused.code, refused.stderr]).toEqual([75, expect.stringContaining('"db maintenance"')]);
    hold.signal("SIGINT");
    expect((await hold.ended).code).toBe(0);
    expect((await place.say("run", "nightly", "-w", "60s", "--", "true")).code).toBe(0);
  });

  it("doctor examines every server, and the verbs work and say so if one server is down", async () => {
    const ports = servers.map(({ port }) => port);
    const { checks } = await place.ask("doctor", "--for", "60s");
    expect([...new Set(checks.map(({ node }) => node))].toSorted()).toEqual(nodesAt(ports));
    const quorum = checks.filter(({ id }) => id === "redlock");
    expect(quorum.map(({ status }) => status)).toEqual(["ok", "ok", "ok"]);

    await place.holdfast.redlock("still").acquire({ leaseMs: 300_000, waitMs: 60_000 });
    await servers[2]?.kill();
    // Each command waits this long for the server that is down.
    const patience = ["--command-timeout", "10s"];
    const [listed, told, shown, page, after] = await Promise.all([
      place.ask("ls", "still", ...patience),
      place.say("ls", "still", ...patience),
      place.ask("show", "still", ...patience),
      place.say("show", "still", ...patience),
      place.ask("doctor", "--only", "role", "--for", "60s"),
    ]);
    expect(listed).toMatchObject({ locks: [{ name: "still" }], unreachable: 1 });
    const missing = `holdfast: 1 server did not reply (127.0.0.1:${ports[2]}): its locks are missing from the list\n`;
    expect(told.stderr).toBe(missing);
    const [past, lacking, busiest, top, who, none] = await Promise.all([
      place.ask("history", ...patience),
      place.say("history", ...patience),
      place.ask("top", "still", "--once", ...patience),
      place.say("top", "still", "--once", ...patience),
      place.ask("clients", ...patience),
      place.say("release", "--client", "AAAAAAAAAAAAAAAA", "-m", "gone", ...patience),
    ]);
    expect(past).toMatchObject({ history: expect.any(Array), unreachable: 1 });
    expect([lacking.code, lacking.stderr]).toEqual([
      0,
      `holdfast: 1 server did not reply (127.0.0.1:${ports[2]}): its history is missing\n`,
    ]);
    expect(busiest).toMatchObject({ locks: [{ name: "still" }], isComplete: true, unreachable: 1 });
    expect(top.stderr).toBe(missing);
    expect(who).toMatchObject({ unreachable: 1 });
    // The client may hold a lock on the server that is down.
    expect(none).toMatchObject({
      code: 69,
      stdout: "AAAAAAAAAAAAAAAA holds no lock that could be read; nothing was released\n",
    });
    // On a slow machine, a second attempt may have raised the numbers on the servers beyond the granted token.
    expect(shown).toMatchObject({
      state: "held",
      holders: [{ token: expect.any(Number) }],
      servers: { holding: 2, answered: 2, total: 3 },
    });
    const only = `(127.0.0.1:${ports[2]}): locks that are only on that server are not shown\n`;
    expect(page.stderr).toBe(`holdfast: 1 server did not reply ${only}`);
    expect(page.stdout).toContain(
      "servers  held on 2 of 3 servers, a majority; 1 did not reply. If either of these 2 servers fails, the lock is lost\n",
    );
    // One of two servers holds it, and the third may hold it as well. So it must not be called free.
    await servers[0]?.command("SET", "hf:redlock:{maybe}", "other/1/x", "PX", "300000");
    const asked = [
      ["show", "maybe"],
      ["show", "maybe", "-q"],
      ["ls", "maybe"],
    ];
    const said = await Promise.all(asked.map((words) => place.say(...words, ...patience)));
    expect(said.map(({ code }) => code)).toEqual([0, 69, 0]);
    const why =
      "cannot be read: it may be held, but too few servers replied to be sure: server 0 has a holder, server 1";
    expect(said[0]?.stdout).toContain(why);
    expect(said[2]?.stderr).toContain(why);
    const release = await place.say("release", "maybe", "--force", "--yes", "-m", "why", ...patience);
    expect([release.code, release.stdout + release.stderr]).toEqual([69, expect.stringContaining("it may be held")]);
    expect(after.checks).toHaveLength(3);
    expect(after.checks.filter(({ status }) => status === "finding")).toMatchObject([
      { node: `127.0.0.1:${ports[2]}`, severity: "warning" },
    ]);
  });
});
