import { describe, expect, it } from "vitest";
import { sleep, until } from "../../holdfast/src/testing/delays.js";
import type { LockRow } from "../src/api.js";
import { type EventReader, readEvents } from "./event-reader.js";
import { type ConsoleScene, redisScene, startConsole, TOKEN } from "./scene.js";

const redis = redisScene();
const headers = { authorization: `Bearer ${TOKEN}` };
/** How long the poller continues after the last viewer has left. */
const LINGER_MS = 3_000;

function follow(site: ConsoleScene, query: string, more: Record<string, string> = {}): Promise<EventReader> {
  return readEvents(site.port, `/api/events?${query}`, { ...headers, ...more });
}

function named(name: string): (data: { locks?: { rows?: LockRow[]; changed?: LockRow[] } }) => boolean {
  return ({ locks }) => (locks?.rows ?? locks?.changed ?? []).some((row) => row.name === name);
}

describe("the stream", () => {
  it("begins with the complete state, and then sends changes", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const before = await redis.holdfast.mutex("there-before").acquire({ label: "release 4.2" });
    const stream = await follow(site, "topics=locks");
    const { data } = await stream.next("state", ({ locks }) => locks !== null);
    const row = data.locks.rows.find(({ name }: LockRow) => name === "there-before");
    expect(row).toMatchObject({
      kind: "mutex",
      state: "held",
      token: before.token,
      label: "release 4.2",
      waiterCount: 0,
    });
    expect(row.holders).toMatchObject([{ owner: before.owner, app: "worker", pid: process.pid, token: before.token }]);
    expect(row.expiresAtMs).toBeGreaterThan(data.atMs);
    expect(data.store.state).toBe("up");

    const lease = await redis.holdfast.mutex("taken-now").acquire();
    const { data: taken } = await stream.next("change", named("taken-now"));
    expect(taken.locks.changed.map(({ name }: LockRow) => name)).not.toContain("there-before");
    await lease.release();
    await stream.next("change", ({ locks }) => locks?.removed.includes("mutex:taken-now"));
    await before.release();
    stream.close();
  });

  it("has headers that prevent buffering, compression and caching", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const stream = await follow(site, "topics=locks");
    expect(stream.headers["content-type"]).toContain("text/event-stream");
    expect(stream.headers["cache-control"]).toContain("no-transform");
    expect(stream.headers["cache-control"]).toContain("no-store");
    expect(stream.headers["x-accel-buffering"]).toBe("no");
    expect(stream.headers["content-encoding"]).toBeUndefined();
    stream.close();
  });

  it("sends only missed changes after a known last id", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const first = await follow(site, "topics=locks");
    const other = await follow(site, "topics=locks");
    const { id } = await first.next("state", ({ locks }) => locks !== null);
    first.close();
    const lease = await redis.holdfast.mutex("missed").acquire();
    await other.next("change", named("missed"));
    const again = await follow(site, "topics=locks", { "last-event-id": id });
    await again.next("change", named("missed"));
    expect(again.events.filter(({ name }) => name === "state")).toEqual([]);
    // A page that opens a new stream cannot set the Last-Event-ID header.
    const byQuery = await follow(site, `topics=locks&lastEventId=${id}`);
    await byQuery.next("change", named("missed"));
    expect(byQuery.events.filter(({ name }) => name === "state")).toEqual([]);
    await lease.release();
    for (const stream of [other, again, byQuery]) stream.close();
  });

  it("sends the complete state for an id of another process, a future id or an invalid id", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const first = await follow(site, "topics=locks");
    const { id } = await first.next("state", ({ locks }) => locks !== null);
    const [epoch] = id.split(/-(?=\d+$)/);
    for (const wrong of [`${epoch}-999999`, "AAAAAAAA-1", "x", `${epoch}-`, "-1"]) {
      const stream = await follow(site, "topics=locks", { "last-event-id": wrong });
      await stream.next("state", ({ locks }) => locks !== null);
      stream.close();
    }
    first.close();
  });

  it("sends the complete state to a viewer that returns after polling had stopped", async () => {
    const site = await startConsole({ holdfast: redis.holdfast, pollMs: 100 });
    const other = await follow(site, "topics=locks");
    const stream = await follow(site, "topics=locks");
    const { id } = await stream.next("state", ({ locks }) => locks !== null);
    stream.close();
    other.close();
    // Without viewers the poller stops after the linger time, and later changes get no event.
    await sleep(LINGER_MS + 500);
    await until(async () => !(await isPolling()), "nobody asks");
    const lease = await redis.holdfast.mutex("while-nobody-looked").acquire();
    const again = await follow(site, "topics=locks", { "last-event-id": id });
    await again.next("state", named("while-nobody-looked"));
    await lease.release();
    again.close();
  });

  it("sends the holder, the queue and the explanation of one lock to its viewers", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const stream = await follow(site, "topics=lock&kind=mutex&name=watched");
    const { data } = await stream.next("state", ({ lock }) => lock !== null);
    expect(data.lock).toMatchObject({ row: { state: "free" }, explain: { code: "free" }, waiters: [], actions: [] });
    const lease = await redis.another({ clientName: "api" }).mutex("watched").acquire();
    const beforeMs = await serverNowMs();
    const waits = [1, 2].map(async (n) =>
      redis
        .another({ clientName: `waiter-${n}` })
        .mutex("watched")
        .acquire(),
    );
    const { data: busy } = await stream.next("change", ({ lock }) => lock?.waiters.length === 2);
    expect(busy.lock.holders).toMatchObject([{ app: "api", token: lease.token }]);
    expect(busy.lock.waiters.map(({ place }: { place: number }) => place)).toEqual([1, 2]);
    // Compares with the server's clock, because the console's estimate depends on the duration of its reading.
    for (const { sinceAtMs } of busy.lock.waiters) expect(sinceAtMs).toBeGreaterThanOrEqual(beforeMs);
    for (const { sinceAtMs } of busy.lock.waiters) expect(sinceAtMs).toBeLessThanOrEqual(await serverNowMs());
    expect(busy.lock.explain).toMatchObject({ code: "held" });
    expect(busy.lock.explain.text).toContain("(api)");
    await lease.release();
    // The two waiters may be queued in either order.
    await Promise.all(waits.map(async (wait) => (await wait).release()));
    stream.close();
  });

  it("gets 400 with the name of the wrong parameter", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    for (const [query, word] of [
      ["topics=locks,gossip", "topics"],
      ["topics=lock", "kind"],
      ["topics=lock&kind=mutex", "name"],
      ["topics=lock&kind=spoon&name=x", "kind"],
    ]) {
      const { status, json } = await site.get(`api/events?${query}`);
      expect([query, status]).toEqual([query, 400]);
      expect(json.detail).toContain(word);
    }
  });
});

describe("the poller", () => {
  it("serves all tabs: each gets the same change with the same id", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const tabs = await Promise.all(Array.from({ length: 12 }, () => follow(site, "topics=locks")));
    await Promise.all(tabs.map((tab) => tab.next("state", ({ locks }) => locks !== null)));
    const lease = await redis.holdfast.mutex("seen-by-all").acquire();
    const seen = await Promise.all(tabs.map((tab) => tab.next("change", named("seen-by-all"))));
    expect(new Set(seen.map(({ id }) => id)).size).toBe(1);
    // Twelve separate pollers would have requested twelve times as many pages.
    const begun = await scans(redis);
    const begunMs = performance.now();
    await sleep(1_000);
    expect(((await scans(redis)) - begun) / ((performance.now() - begunMs) / 1_000)).toBeLessThan(40);
    await lease.release();
    for (const tab of tabs) tab.close();
  });

  it("stops when the last tab is closed", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const stream = await follow(site, "topics=locks");
    await stream.next("state", ({ locks }) => locks !== null);
    await until(isPolling, "it asks");
    stream.close();
    await until(async () => !(await isPolling()), "nobody asks");
  });

  it("does not read Redis before a page is open", async () => {
    const before = await scans(redis);
    const site = await startConsole({ holdfast: redis.holdfast });
    await site.get("api/session");
    await sleep(500);
    expect(await scans(redis)).toBe(before);
  });
});

/** Reads the server's clock. */
async function serverNowMs(): Promise<number> {
  const [seconds, micros] = (await redis.server.command("TIME")) as [string, string];
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** How many SCAN pages the server was asked for. */
async function scans({ server }: typeof redis): Promise<number> {
  return (await server.commandStats()).scan ?? 0;
}

/** Whether the server still receives reads, over several polling intervals. */
async function isPolling(): Promise<boolean> {
  const before = await scans(redis);
  await sleep(600);
  return (await scans(redis)) > before;
}
