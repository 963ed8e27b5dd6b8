/** Tests `holdfast pause`, `resume` and `history`. */
import { PausedError } from "holdfast";
import { describe, expect, it } from "vitest";
import { newStage } from "./harness.js";

const stage = newStage();

describe("pause", () => {
  it("blocks grants, shows the reason, and does not affect the current holder", async () => {
    const lease = await stage.holdfast.mutex("nightly").acquire({ label: "backup" });
    const { code, stdout } = await stage.say("pause", "nightly", "-m", "db maintenance", "--for", "1h");
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^nightly \(mutex\) is paused by .*@.* since .*Z \(\S+ ago\), until .*Z \((59m5\ds|1h)\): "db maintenance"\n/,
    );
    expect(stdout).toMatch(/still held by .* tests for .*: "backup"\n$/);
    await lease.extend(30_000);
    await lease.release();
    await expect(stage.holdfast.mutex("nightly").acquire()).rejects.toThrow(PausedError);

    expect((await stage.say("ls", "nightly", "-o", "name,state,label", "--no-headings")).stdout).toBe(
      "nightly  paused  db maintenance\n",
    );
    const again = await stage.ask("pause", "nightly", "-m", "mine", "--for", "1m");
    expect(again).toMatchObject({ paused: false, label: "db maintenance" });
    expect((await stage.say("pause", "nightly", "-m", "mine")).code).toBe(1);

    const waiting = stage.holdfast.mutex("nightly").acquire({ throughPause: true, waitMs: 60_000 });
    const resumed = await stage.say("resume", "nightly", "-m", "done");
    expect(resumed.code).toBe(0);
    expect(resumed.stdout).toMatch(/^resumed nightly \(mutex\) after .*, paused by .*: "db maintenance"; .*\n$/);
    await (await waiting).release();
    expect(await stage.say("resume", "nightly")).toMatchObject({ code: 1, stdout: "nightly is not paused\n" });

    const { history } = await stage.ask("history", "nightly");
    expect(history).toMatchObject([
      { outcome: "resumed", reason: "done" },
      { outcome: "paused", reason: "db maintenance" },
    ]);
  });

  it("says that a lock is already paused, and how many waiters keep their places", async () => {
    const lease = await stage.holdfast.mutex("kept").acquire();
    await stage.queueUp(stage.client("one"), "kept", "first");
    const one = await stage.say("pause", "kept", "-m", "why");
    expect(one.stdout).toMatch(/^kept \(mutex\) is paused by .*\n {2}1 waiter keeps its place\n$/s);
    const again = await stage.say("pause", "kept", "-m", "mine");
    expect(again.stdout).toMatch(/^kept \(mutex\) is already paused by .*: "why"\n/);
    await stage.say("resume", "kept");
    await lease.release();
  });

  it("pauses the kind as which the name is in use", async () => {
    await using _ = await stage.holdfast.semaphore("pool", { permits: 2 }).acquire();
    expect(await stage.ask("pause", "pool", "-m", "why")).toMatchObject({ paused: true, kind: "semaphore" });
    await expect(stage.holdfast.semaphore("pool", { permits: 2 }).acquire()).rejects.toThrow(PausedError);
    expect(await stage.ask("resume", "pool")).toMatchObject({ resumed: true, kind: "semaphore" });
  });

  it("keeps the current holder in the list, with its times, token and label", async () => {
    const lease = await stage.holdfast.mutex("busy").acquire({ leaseMs: 3_600_000, label: "release 4.2" });
    await stage.say("pause", "busy", "-m", "db maintenance");
    const columns = ["-o", "state,holder,token,label", "--no-headings"];
    const row = async (): Promise<string[]> =>
      (await stage.say("ls", "busy", ...columns)).stdout.trimEnd().split(/ {2,}/);
    expect(await row()).toEqual([
      "paused, held",
      expect.stringMatching(new RegExp(`/${process.pid} tests$`)),
      String(lease.token),
      "release 4.2",
    ]);
    const times = await stage.say("ls", "busy", "--raw", "-o", "state,since,left");
    const [state, since, left] = times.stdout.trimEnd().split("\t");
    expect([state, Number(since)]).toEqual(["paused", Math.floor(lease.token / 1_000)]);
    expect(Number(left)).toBeGreaterThan(0);
    await lease.release();
    expect(await row()).toEqual(["paused", expect.stringContaining("@"), "-", "db maintenance"]);
  });

  it("suggests another command for --redlock, with the given servers and without their passwords", async () => {
    const servers = ["-r", "redis://:secret@10.0.0.1:1", "-r", "redis://10.0.0.2:1"];
    const { code, stderr } = await stage.say("pause", "a b", "--redlock", ...servers, "-m", "why");
    expect(code).toBe(64);
    expect(stderr).toMatch(
      /holdfast run 'a b' -r \S*10\.0\.0\.1:1\S* -r redis:\/\/10\.0\.0\.2:1 --redlock --hold -m WHY/,
    );
    expect(stderr).not.toContain("secret");
  });

  it("exits with 65 if the name is in use as a kind that cannot be paused", async () => {
    await stage.holdfast.countDownLatch("gate").trySetCount(2);
    const { code, stderr } = await stage.say("pause", "gate", "-m", "why");
    expect(code).toBe(65);
    expect(stderr).toContain("gate is in use as a count-down-latch");
  });

  it("exits with 64 without a reason, for two ends, or for an end in the past", async () => {
    const wrong = await Promise.all([
      stage.say("pause", "x"),
      stage.say("pause", "x", "-m", "why", "--for", "1h", "--until", "18:00"),
      stage.say("pause", "x", "-m", "why", "--until", "2020-01-01"),
      stage.say("pause", "x", "-m", "why", "--until", "tomorrow"),
      stage.say("pause", "x", "-m", "a".repeat(257)),
    ]);
    expect(wrong.map(({ code }) => code)).toEqual([64, 64, 64, 64, 64]);
    expect(wrong[2]?.stderr).toContain("has passed");
  });

  it("ends at the given time", async () => {
    const untilAtMs = Math.ceil(Date.now() / 1_000) * 1_000 + 3_600_000;
    const paused = await stage.ask("pause", "timed", "-m", "why", "--until", new Date(untilAtMs).toISOString());
    expect(paused).toMatchObject({ paused: true, untilAtMs });
  });
});

describe("history", () => {
  it("lists holds, newest first, with the times waited and held", async () => {
    expect((await stage.say("elect", "job", "--delay", "0", "-m", "first", "--", "true")).code).toBe(0);
    expect((await stage.say("elect", "job", "--delay", "0", "--", "false")).code).toBe(1);
    const { code, stdout } = await stage.say("history", "job");
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^WHEN +HOLDER +WAITED +HELD +OUTCOME +REASON$/);
    expect(lines).toHaveLength(3);
    const { history } = await stage.ask("history", "job");
    expect(history.map(({ outcome }) => outcome)).toEqual(["released", "released"]);
    expect(history[1]).toMatchObject({ name: "job", label: "first" });
  });

  it("lists all names if none is given, and filters by outcome and limit", async () => {
    const all = await stage.ask("history", "--limit", "100");
    expect(new Set(all.history.map(({ name }) => name))).toContain("nightly");
    expect((await stage.ask("history", "--outcome", "paused", "--limit", "1")).history).toHaveLength(1);
    const wrong = await stage.say("history", "--outcome", "died");
    expect(wrong).toMatchObject({ code: 64, stderr: expect.stringContaining("must be one of released, lost") });
  });
});
