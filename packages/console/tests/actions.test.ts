import { LeaseLostError } from "holdfast";
import { readHistory } from "holdfast/admin";
import { describe, expect, it } from "vitest";
import { until } from "../../holdfast/src/testing/delays.js";
import { ACTIONS } from "../src/api.js";
import { type ConsoleScene, type Page, redisScene, startConsole } from "./scene.js";

const redis = redisScene();
const PATHS = ["release", "release-client", "pause", "extend-pause", "resume", "resize", "resign"];

async function withAll(): Promise<{ site: ConsoleScene; page: Page }> {
  const site = await startConsole({ holdfast: redis.holdfast, allow: ACTIONS });
  return { site, page: await site.signIn("ana") };
}

describe("a console that is read-only", () => {
  it("has no route for any action", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const page = await site.signIn();
    for (const path of PATHS) {
      expect((await page.post(`api/actions/${path}`, { reason: "x" })).status).toBe(404);
      expect((await page.get(`api/actions/${path}`)).status).toBe(404);
    }
    expect((await page.get("api/session")).json.allow).toEqual([]);
  });

  it("has routes only for the allowed actions", async () => {
    const site = await startConsole({ holdfast: redis.holdfast, allow: ["pause"] });
    const page = await site.signIn();
    expect((await page.post("api/actions/release", { reason: "x" })).status).toBe(404);
    expect((await page.post("api/actions/pause", { reason: "x" })).status).toBe(400);
    expect((await page.get("api/session")).json.allow).toEqual(["pause"]);
  });
});

describe("an action", () => {
  it("replies 405 with Allow: POST to any other method, and changes nothing", async () => {
    const { page, site } = await withAll();
    const lease = await redis.holdfast.mutex("not-by-get").acquire();
    const query = `kind=mutex&name=not-by-get&owner=${encodeURIComponent(lease.owner)}&token=${lease.token}&reason=x`;
    for (const path of PATHS) {
      for (const method of ["GET", "HEAD", "PUT", "DELETE", "PATCH"]) {
        const { status, headers } = await site.ask(`api/actions/${path}?${query}`, {
          method,
          headers: { cookie: page.cookie },
        });
        expect([path, method, status, headers.allow]).toEqual([path, method, 405, "POST"]);
      }
    }
    expect((await redis.holdfast.mutex("not-by-get").inspect()).holders).toHaveLength(1);
    await lease.release();
  });

  it("replies 400 without a reason or with an invalid field", async () => {
    const { page, site } = await withAll();
    const lease = await redis.holdfast.mutex("strict").acquire();
    const good = { kind: "mutex", name: "strict", owner: lease.owner, token: lease.token, reason: "why" };
    for (const wrong of [
      ...[{ reason: "" }, { reason: "   " }, { reason: undefined }, { reason: 5 }, { reason: "é".repeat(129) }],
      ...[
        { kind: "spoon" },
        { name: "" },
        { name: "x".repeat(513) },
        { name: 7 },
        { owner: "" },
        { token: "1" },
        { token: 1.5 },
        { token: -1 },
      ],
    ]) {
      const { status, json } = await page.post("api/actions/release", { ...good, ...wrong });
      expect([wrong, status]).toEqual([wrong, 400]);
      expect(json.detail).toContain(Object.keys(wrong)[0]);
    }
    for (const body of ["", "{", "[]", "null", '"x"'])
      expect((await page.post("api/actions/release", body)).status).toBe(400);
    expect((await page.post("api/actions/release", { ...good, reason: "x".repeat(20_000) })).status).toBe(413);
    expect(site.audit).toEqual([]);
    await lease.release();
  });
});

describe("a force-release", () => {
  it("removes the holder that the page showed, notifies it of the actor and the reason, and writes an audit line", async () => {
    const { page, site } = await withAll();
    const lease = await redis.holdfast.mutex("deploy").acquire({ label: "release 4.2" });
    const next = redis.another({ clientName: "next" }).mutex("deploy").acquire();
    await until(async () => (await redis.holdfast.mutex("deploy").inspect()).waiterCount === 1, "it waits");
    const shown = (await page.get("api/lock?kind=mutex&name=deploy")).json;
    const [holder] = shown.holders;
    const { owner, token } = holder;
    const answer = await page.post("api/actions/release", {
      kind: "mutex",
      name: "deploy",
      owner,
      token,
      reason: "ci hangs",
    });
    expect(answer.status).toBe(200);
    expect(answer.json.message).toMatch(/^Released deploy, which .*worker.* held\. First in the queue: .+\.$/);
    const lost = await new Promise<unknown>((resolve) => {
      if (lease.signal.aborted) resolve(lease.signal.reason);
      else lease.signal.addEventListener("abort", () => resolve(lease.signal.reason));
    });
    expect(lost).toBeInstanceOf(LeaseLostError);
    expect((lost as LeaseLostError).reason).toBe("force-released");
    expect(String((lost as LeaseLostError).message)).toContain("ci hangs");
    expect(site.audit).toMatchObject([
      {
        action: "release",
        kind: "mutex",
        name: "deploy",
        token,
        who: "ana",
        reason: "ci hangs",
        outcome: "done",
        address: expect.stringMatching(/127\.0\.0\.1/),
      },
    ]);
    const [entry] = await readHistory(redis.holdfast, { name: "deploy" });
    expect(entry).toMatchObject({ outcome: "forced", by: "ana", reason: "ci hangs", token });
    await (await next).release();
  });

  it("never affects a later holder: an outdated page gets 409 and the current holder", async () => {
    const { page, site } = await withAll();
    const first = await redis.holdfast.mutex("moved-on").acquire();
    const shown = (await page.get("api/lock?kind=mutex&name=moved-on")).json.holders[0];
    await first.release();
    const second = await redis.another({ clientName: "newcomer" }).mutex("moved-on").acquire();
    const body = { kind: "mutex", name: "moved-on", owner: shown.owner, token: shown.token, reason: "old news" };
    const { status, json } = await page.post("api/actions/release", body);
    expect(status).toBe(409);
    expect(json).toMatchObject({
      code: "stale",
      holder: { app: "newcomer", token: second.token, owner: second.owner },
    });
    // Owner and token must both match.
    expect((await page.post("api/actions/release", { ...body, token: second.token })).status).toBe(409);
    expect((await page.post("api/actions/release", { ...body, owner: second.owner })).status).toBe(409);
    expect(second.signal.aborted).toBe(false);
    expect(site.audit.map(({ outcome }) => outcome)).toEqual(["refused", "refused", "refused"]);
    await second.release();
    const free = await page.post("api/actions/release", body);
    expect([free.status, free.json.code, free.json.holder]).toEqual([409, "not-held", null]);
  });

  it("releases one holder of a semaphore and keeps the others", async () => {
    const { page } = await withAll();
    const pool = redis.holdfast.semaphore("pool", { permits: 3 });
    const [one, two] = [await pool.acquire(), await pool.acquire()];
    const shown = (await page.get("api/semaphores")).json.semaphores.find(
      ({ row }: { row: { name: string } }) => row.name === "pool",
    );
    expect(shown.permits).toEqual({ used: 2, limit: 3, isOver: false });
    const holder = shown.holders.find(({ owner }: { owner: string }) => owner === one.owner);
    const body = { kind: "semaphore", name: "pool", owner: holder.owner, token: holder.token, reason: "stuck" };
    expect((await page.post("api/actions/release", body)).status).toBe(200);
    expect((await pool.inspect()).holders.map(({ owner }) => owner)).toEqual([two.owner]);
    await two.release();
  });
});

describe("a pause", () => {
  it("blocks a lock and shows the actor and the reason, and only the pause that was shown can be resumed", async () => {
    const { page, site } = await withAll();
    const paused = await page.post("api/actions/pause", {
      kind: "mutex",
      name: "nightly",
      reason: "db maintenance",
      untilAtMs: null,
    });
    expect(paused.status).toBe(200);
    expect(paused.json.message).toBe("Paused nightly. It has no holder. No waiters.");
    expect(paused.json.lock).toMatchObject({
      row: { state: "paused", pause: { by: "ana", reason: "db maintenance", untilAtMs: null } },
      explain: { code: "paused" },
    });
    await expect(redis.another().mutex("nightly").acquire()).rejects.toThrow(/db maintenance/);
    const again = await page.post("api/actions/pause", {
      kind: "mutex",
      name: "nightly",
      reason: "me too",
      untilAtMs: null,
    });
    expect([again.status, again.json.code]).toEqual([409, "already-paused"]);
    const body = { kind: "mutex", name: "nightly", reason: "done" };
    const stale = await page.post("api/actions/resume", { ...body, pauseId: "another" });
    expect([stale.status, stale.json.code]).toEqual([409, "stale"]);
    const { id } = paused.json.lock.row.pause;
    const resumed = await page.post("api/actions/resume", { ...body, pauseId: id });
    expect([resumed.status, resumed.json.message]).toEqual([200, "Resumed nightly. No waiters."]);
    const late = await page.post("api/actions/resume", { ...body, pauseId: id });
    expect([late.status, late.json.code]).toEqual([409, "not-paused"]);
    expect(site.audit.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      "pause done",
      "pause refused",
      "resume refused",
      "resume done",
      "resume refused",
    ]);
    const told = await readHistory(redis.holdfast, { name: "nightly" });
    expect(told.map(({ outcome }) => outcome)).toEqual(["resumed", "paused"]);
  });

  it("gets a new end without an interval in which the lock could be granted", async () => {
    const { page, site } = await withAll();
    const place = { kind: "mutex", name: "migration" };
    const body = { ...place, reason: "db maintenance", untilAtMs: Date.now() + 3_600_000 };
    const paused = await page.post("api/actions/pause", body);
    const waiting = redis.another().mutex("migration").acquire({ throughPause: true, waitMs: 60_000 });
    const { id } = paused.json.lock.row.pause;
    const untilAtMs = Date.now() + 7_200_000;
    const longer = { ...place, reason: "it takes longer", untilAtMs, pauseId: id };
    expect((await page.post("api/actions/extend-pause", { ...longer, pauseId: "another" })).json.code).toBe("stale");
    expect((await page.post("api/actions/extend-pause", { ...longer, untilAtMs: 5 })).status).toBe(400);
    const extended = await page.post("api/actions/extend-pause", longer);
    expect(extended.status).toBe(200);
    const { pause, waiterCount } = extended.json.lock.row;
    expect(pause).toMatchObject({ by: "ana", reason: "db maintenance", untilAtMs });
    expect(waiterCount).toBeLessThanOrEqual(1);
    expect((await page.post("api/actions/extend-pause", longer)).json.code, "a page out of date").toBe("stale");
    const open = await page.post("api/actions/extend-pause", { ...longer, pauseId: pause.id, untilAtMs: null });
    expect(open.json.lock.row.pause).toMatchObject({ by: "ana", untilAtMs: null });
    const last = open.json.lock.row.pause.id;
    expect((await page.post("api/actions/resume", { ...place, reason: "done", pauseId: last })).status).toBe(200);
    await (await waiting).release();
    expect((await page.post("api/actions/extend-pause", { ...longer, pauseId: last })).json.code).toBe("not-paused");
    expect(site.audit.filter(({ outcome }) => outcome === "done").map(({ detail }) => detail)).toEqual([
      expect.stringContaining("Paused migration."),
      expect.stringContaining("migration stays paused until 2"),
      expect.stringContaining("migration stays paused until it is resumed."),
      expect.stringContaining("Resumed migration."),
    ]);
  });

  it("is refused if it would end in the past", async () => {
    const { page } = await withAll();
    const body = { kind: "mutex", name: "nightly", reason: "x", untilAtMs: Date.now() - 60_000 };
    expect((await page.post("api/actions/pause", body)).status).toBe(400);
  });
});

describe("the locks of a crashed client", () => {
  it("are not released while it may be alive, and the reply is 409", async () => {
    const { page, site } = await withAll();
    const lease = await redis.holdfast.mutex("alive").acquire();
    const [clientId = ""] = lease.owner.split("/");
    for (const id of [clientId, "AAAAAAAAAAAAAAAA"]) {
      const { status, json } = await page.post("api/actions/release-client", { clientId: id, reason: "looks dead" });
      expect([status, json.code]).toEqual([409, "stale"]);
    }
    expect(lease.signal.aborted).toBe(false);
    expect(site.audit).toMatchObject([
      { kind: "client", name: clientId, outcome: "refused" },
      { kind: "client", outcome: "refused" },
    ]);
    const { clients } = (await page.get("api/clients")).json;
    const own = clients.find((client: { clientId: string }) => client.clientId === clientId);
    expect(own).toMatchObject({ app: "worker", pid: process.pid, isDead: false });
    expect(own.sinceAtMs).toBeGreaterThan(0);
    expect(own.sinceAtMs).toBeLessThanOrEqual(own.seenAtMs);
    expect(own.holds).toContainEqual(expect.objectContaining({ kind: "mutex", name: "alive", token: lease.token }));
    await lease.release();
  });

  it("are all released, and no others, after the client was silent for a minute", async () => {
    const { page } = await withAll();
    const dead = redis.another({ clientName: "gone" });
    const one = await dead.mutex("left-behind-1").acquire({ leaseMs: 600_000, renew: false });
    await dead.mutex("left-behind-2").acquire({ leaseMs: 600_000, renew: false });
    const other = await redis.holdfast.mutex("not-theirs").acquire();
    const [clientId = ""] = one.owner.split("/");
    // Backdates the client's record, as if it had been silent for a minute.
    const record = `hf:client:${clientId}`;
    await until(async () => (await redis.server.command("HEXISTS", record, "seen")) === 1, "it has a record");
    await redis.server.command("HSET", record, "seen", Date.now() - 90_000);
    const { status, json } = await page.post("api/actions/release-client", { clientId, reason: "host is gone" });
    expect([status, json.message]).toEqual([200, expect.stringContaining("Released 2 locks of client")]);
    for (const name of ["left-behind-1", "left-behind-2"]) {
      expect((await redis.holdfast.mutex(name).inspect()).holders).toEqual([]);
    }
    expect(other.signal.aborted).toBe(false);
    await other.release();
  });
});

describe("a resize", () => {
  it("changes the number only if the page showed the current one", async () => {
    const { page } = await withAll();
    const lease = await redis.holdfast.semaphore("pdf", { permits: 3 }).acquire();
    expect((await page.post("api/actions/resize", { name: "pdf", from: 3, permits: 5, reason: "more" })).status).toBe(
      200,
    );
    expect(await redis.holdfast.semaphore("pdf", { permits: 3 }).capacity()).toBe(5);
    const stale = await page.post("api/actions/resize", { name: "pdf", from: 3, permits: 1, reason: "fewer" });
    expect([stale.status, stale.json.code, stale.json.permits]).toEqual([
      409,
      "stale",
      { used: 1, limit: 5, isOver: false },
    ]);
    await lease.release();
  });
});

describe("removing a leader", () => {
  it("ends the term that the page showed, and no later term", async () => {
    const { page } = await withAll();
    const election = redis.holdfast.election("scheduler");
    const first = await election.campaign("host-1");
    const { elections } = (await page.get("api/elections")).json;
    expect(elections).toMatchObject([
      { leader: { value: "host-1", term: first.term, app: "worker" }, candidateCount: 0 },
    ]);
    expect(
      (await page.post("api/actions/resign", { name: "scheduler", term: first.term, reason: "deploy" })).status,
    ).toBe(200);
    const second = await redis.another().election("scheduler").campaign("host-2");
    const stale = await page.post("api/actions/resign", { name: "scheduler", term: first.term, reason: "again" });
    expect([stale.status, stale.json.code]).toEqual([409, "stale"]);
    expect(second.signal.aborted).toBe(false);
    await second.release();
  });
});
