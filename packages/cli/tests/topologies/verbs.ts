/**
 * Tests the verbs on topologies with one order of grants: a cluster and Sentinel. All tests share one set of servers.
 */
import { LeaseLostError, PausedError } from "holdfast";
import { appendHistory } from "holdfast/admin";
import { expect, it, vi } from "vitest";
import { nodesAt, type Place, throughConsole } from "./place.js";

/** The differences between the topologies. */
export interface Topology {
  place(): Place;
  /** The ports of all servers that the doctor must examine. */
  ports(): readonly number[];
  /** The name of the topology in the console. */
  readonly called: string;
}

/** Enough names that each of three masters has some. */
const NAMES = Array.from({ length: 12 }, (_, i) => `job:${i}`);
const WAIT = { timeout: 60_000, interval: 20 };

/** Declares the tests for one topology. */
export function testVerbs({ place, ports, called }: Topology): void {
  it("ls lists the locks of every primary, complete and in pages, and so does the console", async () => {
    const { holdfast, say, ask } = place();
    const leases = await Promise.all(NAMES.map((name) => holdfast.mutex(name).acquire({ label: `label of ${name}` })));
    try {
      const { locks, nextCursor, unreachable } = await ask("ls", "job:*");
      expect({ nextCursor, unreachable }).toEqual({ nextCursor: null, unreachable: 0 });
      expect(locks.map(({ name }) => name).toSorted()).toEqual(NAMES.toSorted());
      for (const lock of locks) {
        expect(lock).toMatchObject({ kind: "mutex", state: "held", label: `label of ${lock.name}`, waiters: 0 });
        expect(lock.holders[0]).toMatchObject({ app: "tests", pid: process.pid, sinceAtMs: expect.any(Number) });
      }
      const { stdout } = await say("ls", "job:*", "-o", "name,app,waiters", "--sort", "name");
      expect(stdout.split("\n").slice(0, 2)).toEqual(["NAME    APP    WAIT", "job:0   tests  0"]);

      const paged: string[] = [];
      let cursor: string | null = null;
      do {
        const page = await ask("ls", "job:*", "--limit", "5", ...(cursor === null ? [] : ["--cursor", cursor]));
        paged.push(...page.locks.map(({ name }) => name));
        cursor = page.nextCursor;
      } while (cursor !== null);
      expect(paged.toSorted()).toEqual(NAMES.toSorted());

      const { answer, code } = await throughConsole(place(), "api/locks?q=name:job");
      expect(answer.rows.map(({ name }) => name).toSorted()).toEqual(NAMES.toSorted());
      expect(code).toBe(0);
    } finally {
      await Promise.all(leases.map((lease) => lease.release()));
    }
  });

  it("show and a refused run name the holder, top lists the lock, release frees it, and history shows the release", async () => {
    const { holdfast, say, ask } = place();
    const mutex = holdfast.mutex("deploy");
    const lease = await mutex.acquire({ label: "release 4.2", leaseMs: 300_000 });
    const next = mutex.acquire({ label: "the next one", waitMs: 600_000, leaseMs: 300_000 });
    next.catch(() => {});
    await vi.waitFor(async () => expect((await mutex.inspect()).waiterCount).toBe(1), WAIT);

    const [shown, page, held, free, refused, top] = await Promise.all([
      ask("show", "deploy"),
      say("show", "deploy"),
      say("show", "deploy", "-q"),
      say("show", "nothing", "-q"),
      say("run", "deploy", "-n", "--", "true"),
      ask("top", "--once"),
    ]);
    expect(shown).toMatchObject({
      state: "held",
      holders: [{ app: "tests", token: lease.token, owner: lease.owner, label: "release 4.2" }],
      queue: [{ app: "tests", label: "the next one" }],
    });
    expect(page.stdout).toContain(`token ${lease.token}  owner ${lease.owner}`);
    expect([held.code, free.code]).toEqual([0, 1]);
    expect([refused.code, refused.stderr]).toEqual([
      75,
      expect.stringMatching(/^holdfast: deploy is held by .*"release 4\.2"/),
    ]);
    expect(top).toMatchObject({
      isComplete: true,
      locks: [{ name: "deploy", waiters: 1, holder: { token: lease.token } }],
    });

    const wrong = await say("release", "deploy", "--token", String(lease.token - 1), "-m", "why");
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringContaining("nothing was released")]);
    const released = await ask("release", "deploy", "--token", String(lease.token), "-m", "wrong build");
    const granted = await next;
    expect(released).toMatchObject({ released: true, holder: { token: lease.token }, next: { token: granted.token } });
    await vi.waitFor(() => expect(lease.signal.reason).toBeInstanceOf(LeaseLostError), WAIT);
    await granted.release();
    // The history of the run itself may be missing on a busy machine, because a run waits at most half a second to
    // write it.
    expect((await ask("history", "deploy", "--outcome", "forced")).history).toMatchObject([
      { outcome: "forced", reason: "wrong build", token: lease.token },
    ]);
  });

  it("pause blocks grants until resume, and history merges the events of all names", async () => {
    const { holdfast, say, ask } = place();
    const paused = await ask("pause", "nightly", "-m", "db maintenance", "--for", "1h");
    expect(paused).toMatchObject({ paused: true, kind: "mutex", label: "db maintenance" });
    await expect(holdfast.mutex("nightly").acquire()).rejects.toThrow(PausedError);
    const [refused, again, listed] = await Promise.all([
      say("run", "nightly", "-w", "10m", "--", "true"),
      say("pause", "nightly", "-m", "mine"),
      ask("ls", "nightly"),
    ]);
    expect([refused.code, refused.stderr]).toEqual([75, expect.stringContaining('"db maintenance"')]);
    expect(again.code).toBe(1);
    expect(listed.locks).toMatchObject([{ state: "paused", label: "db maintenance" }]);
    expect(await ask("resume", "nightly", "-m", "done")).toMatchObject({ resumed: true });
    expect((await say("resume", "nightly")).code).toBe(1);
    for (const name of ["alpha", "beta", "gamma"]) {
      expect((await say("run", name, "-n", "-m", "once", "--once-per", "1h", "--", "true")).code).toBe(0);
    }
    expect((await say("run", "alpha", "-n", "--once-per", "1h", "--", "true")).code).toBe(75);
    await Promise.all(NAMES.map((name) => appendHistory(holdfast, { what: "skipped", kind: "mutex", name })));
    const { history } = await ask("history", "--limit", "100");
    const told = history.map(({ name, outcome }) => `${name} ${outcome}`);
    expect(told).toEqual(
      expect.arrayContaining(["nightly paused", "nightly resumed", ...NAMES.map((name) => `${name} skipped`)]),
    );
  });

  it("elect leads, --listen follows the leader, and --resign removes it", async () => {
    const { holdfast, say, ask, start } = place();
    expect((await say("elect", "feed", "--who")).code).toBe(1);
    const following = start("elect", "feed", "--listen", "--json");
    const leader = start("elect", "feed", "--delay", "0", "--value", "a:1", "--lease", "5m");
    await vi.waitFor(async () => expect((await holdfast.election("feed").leader())?.value).toBe("a:1"), WAIT);
    const { term } = await ask("elect", "feed", "--who");
    const seen = (): unknown[] =>
      following
        .stdout()
        .trim()
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line).term);
    await vi.waitFor(() => expect(seen()).toContain(term), WAIT);
    const down = await ask("elect", "feed", "--resign", "--token", String(term), "-m", "drain");
    expect(down).toMatchObject({ resigned: true, holder: { token: term } });
    expect((await leader.ended).code).toBe(123);
    await vi.waitFor(() => expect(seen().at(-1)).toBeNull(), WAIT);
    following.signal("SIGINT");
    expect((await following.ended).code).toBe(0);
    const command = ["elect", "feed", "--delay", "0", "--", "sh", "-c", "test $HOLDFAST_TERM -gt 0"];
    expect((await say(...command)).code).toBe(0);
  });

  it("doctor examines every server, and the console reports the topology", async () => {
    const { checks } = await place().ask("doctor", "--for", "60s");
    expect([...new Set(checks.map(({ node }) => node))].toSorted()).toEqual(nodesAt(ports()));
    const roles = checks.filter(({ id }) => id === "role");
    expect(roles.map(({ status }) => status)).toEqual(ports().map(() => "ok"));
    expect(checks.filter(({ status }) => status === "unknown")).toEqual([]);
    const { answer } = await throughConsole(place(), "api/redis");
    expect(answer).toMatchObject({ topology: called, hasServerFacts: true, store: { state: "up" } });
  });
}
