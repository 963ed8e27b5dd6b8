/** Tests `holdfast show` and `holdfast release` on locks that this process holds. */
import { LeaseLostError } from "holdfast";
import { lookUpConditions } from "holdfast/admin";
import { describe, expect, it } from "vitest";
import { until } from "../../../holdfast/src/testing/delays.js";
import { newStage } from "./harness.js";

const stage = newStage();

describe("show", () => {
  it("shows the holder and the waiters in the order of the queue", async () => {
    const lease = await stage.holdfast.mutex("deploy").acquire({ label: "release 4.2" });
    await stage.queueUp(stage.client("one"), "deploy", "first");
    await stage.queueUp(stage.client("two"), "deploy", "second");
    const { code, stdout } = await stage.say("show", "deploy");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^deploy: mutex, held\n/);
    expect(stdout).toContain(`token ${lease.token}  owner ${lease.owner}`);
    expect(stdout).toMatch(/holder .*\/\d+ tests for .* \(since .*Z\), lease left \d+s: "release 4.2"/);
    expect(stdout.indexOf(" one ")).toBeLessThan(stdout.indexOf(" two "));
    const document = await stage.ask("show", "deploy");
    expect(document).toMatchObject({ v: 1, name: "deploy", kind: "mutex", state: "held", waiters: 2 });
    expect(document.queue.map(({ app }) => app)).toEqual(["one", "two"]);
    expect(document.holders[0]).toMatchObject({ token: lease.token, owner: lease.owner, label: "release 4.2" });
  });

  it("prints nothing with -q, and exits with 0 if the lock is held and 1 if it is free", async () => {
    await using _ = await stage.holdfast.semaphore("pool", { permits: 3 }).acquire();
    expect(await stage.say("show", "pool", "-q")).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(await stage.say("show", "free", "-q")).toEqual({ code: 1, stdout: "", stderr: "" });
    expect(await stage.say("show", "free")).toMatchObject({ code: 0, stdout: "free: free\n" });
  });

  it("shows the permits and slots of a semaphore, and every kind that uses the name", async () => {
    await using _ = await stage.holdfast.semaphore("both", { permits: 3 }).acquire({ permits: 2 });
    await using __ = await stage.holdfast.mutex("both").acquire();
    const { stdout } = await stage.say("show", "both");
    expect(stdout).toContain("both: mutex, held");
    expect(stdout).toContain("both: semaphore, 2 of 3");
    expect(stdout).toContain("2 permits, slot 0,1");
    const document = await stage.ask("show", "both");
    expect([document.kind, document.alsoKinds[0]?.kind]).toEqual(["mutex", "semaphore"]);
  });

  it("shows waiters of conditions of a free mutex with --conditions", async () => {
    const mutex = stage.holdfast.mutex("stock");
    const stop = new AbortController();
    const lease = await mutex.acquire({ fairness: "strict" });
    const wait = mutex.condition("full").wait(lease, { signal: stop.signal, waitMs: Infinity });
    wait.catch(() => {});
    const looked = (): ReturnType<typeof lookUpConditions> => lookUpConditions(stage.holdfast, "stock");
    await until(async () => (await looked()).locks[0]?.conditions.length === 1, "it waits");
    // Conditions are found only by scanning all keys, which `show` does only on request.
    expect(await stage.ask("show", "stock")).toMatchObject({ state: "free" });
    const document = await stage.ask("show", "stock", "--conditions");
    expect(document).toMatchObject({ kind: "mutex", state: "awaited", conditions: [{ name: "full", waiters: 1 }] });
    expect((await stage.say("show", "stock", "--conditions")).stdout).toMatch(
      /^stock: mutex, awaited\n {2}condition full: 1 waiting\n/,
    );
    stop.abort();
    await Promise.allSettled([wait]);
  });

  it("shows a lock in Redisson's format, and releases it by its owner", async () => {
    const { redisson } = await import("@holdfast/interop/redisson");
    const lease = await redisson(stage.holdfast).lock("java").acquire();
    const words = ["--protocol", "redisson"];
    const document = await stage.ask("show", "java", ...words);
    expect(document).toMatchObject({ kind: "redisson lock", state: "held" });
    const owner = document.holders[0]?.owner ?? "";
    const released = await stage.say("release", "java", "--owner", owner, "-m", "test", ...words);
    // This format does not show all waiters, so the command does not say that there are none.
    expect(released).toMatchObject({ code: 0, stdout: expect.stringMatching(/^released java from [^;]*\n$/) });
    expect((await stage.say("show", "java", "-q", ...words)).code).toBe(1);
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
  });
});

describe("release", () => {
  it("frees the lock of the named holder, notifies it of the reason, and names the next holder", async () => {
    const lease = await stage.holdfast.mutex("night").acquire({ label: "batch" });
    const { granted } = await stage.queueUp(stage.client("next-one"), "night", "second");
    const document = await stage.ask("release", "night", "--token", String(lease.token), "-m", "it hangs");
    expect(document).toMatchObject({
      v: 1,
      released: true,
      holder: { token: lease.token, label: "batch" },
      next: { app: "next-one" },
    });
    expect((await granted)?.token).toBe(document.next.token);
    const reason: unknown = lease.signal.reason;
    expect(lease.signal.aborted).toBe(true);
    expect(String(reason)).toContain("it hangs");
    const { history } = await stage.ask("history", "night", "--outcome", "forced");
    expect(history).toMatchObject([{ outcome: "forced", reason: "it hangs", token: lease.token }]);
  });

  it("never affects a later holder: an old token or owner exits with 1", async () => {
    const past = await stage.holdfast.mutex("stale").acquire();
    await past.release();
    const lease = await stage.client("present").mutex("stale").acquire();
    for (const whose of [
      ["--token", String(past.token)],
      ["--owner", past.owner],
    ]) {
      const { code, stdout } = await stage.say("release", "stale", ...whose, "-m", "why");
      expect(code).toBe(1);
      expect(stdout).toMatch(/^stale is held by .* present for .*; nothing was released\n$/);
    }
    expect(lease.validForMs()).toBeGreaterThan(0);
    await lease.release();
    const free = await stage.say("release", "stale", "--force", "--yes", "-m", "why");
    expect(free).toMatchObject({ code: 1, stdout: "stale is not held; nothing was released\n" });
  });

  it("exits with 64 for --force without a terminal, and releases the current holder with --yes", async () => {
    const lease = await stage.holdfast.mutex("forced").acquire();
    const asked = await stage.say("release", "forced", "--force", "-m", "why");
    expect(asked).toMatchObject({ code: 64, stderr: expect.stringContaining("add --yes") });
    expect(lease.validForMs()).toBeGreaterThan(0);
    const done = await stage.say("release", "forced", "--force", "--yes", "-m", "why");
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^released forced from .*; no waiters\n$/),
    });
  });

  it("says how many clients still wait if none of them can be granted the lock yet", async () => {
    const pool = (who: string) => stage.client(who).semaphore("crowded", { permits: 2 });
    const [one, other] = [await pool("one").acquire(), await pool("other").acquire()];
    const stop = new AbortController();
    const waiting = pool("third").acquire({ permits: 2, waitMs: Infinity, signal: stop.signal });
    waiting.catch(() => {});
    await until(async () => (await pool("fourth").inspect()).waiterCount === 1, "it waits");
    const { stdout } = await stage.say("release", "crowded", "--owner", one.owner, "-m", "why");
    expect(stdout).toMatch(/^released crowded from .*; 1 client is still waiting\n$/);
    stop.abort();
    await Promise.allSettled([waiting]);
    await other.release();
  });

  it("exits with 64 for --force if there are several holders, and names them", async () => {
    const semaphore = stage.holdfast.semaphore("many", { permits: 2 });
    await using one = await semaphore.acquire();
    await using other = await semaphore.acquire();
    const { code, stderr } = await stage.say("release", "many", "--force", "--yes", "-m", "why");
    expect(code).toBe(64);
    expect(stderr).toContain(one.owner);
    expect(stderr).toContain(other.owner);
    expect((await stage.say("release", "many", "--owner", one.owner, "-m", "why")).code).toBe(0);
    expect(other.validForMs()).toBeGreaterThan(0);
  });

  it("exits with 64 without exactly one holder and a reason", async () => {
    const wrong = await Promise.all([
      stage.say("release", "x", "-m", "why"),
      stage.say("release", "x", "--token", "1", "--force", "-m", "why"),
      stage.say("release", "x", "--token", "1"),
      stage.say("release", "x", "--token", "one", "-m", "why"),
      stage.say("release", "-m", "why", "--token", "1"),
    ]);
    expect(wrong.map(({ code }) => code)).toEqual([64, 64, 64, 64, 64]);
    expect(wrong[2]?.stderr).toContain("needs -m WHY");
  });
});
