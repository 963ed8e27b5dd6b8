/** Lists on three independent servers, some of which stop replying before or while they are read. */
import { Keyspace } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { appendHistory, clients, survey, surveyAll } from "../../src/admin/index.js";
import { searchHistory } from "../../src/admin/read-history.js";
import { createHoldfast, type Holdfast, StoreError } from "../../src/index.js";
import { LONG_MS } from "../../src/testing/delays.js";
import { WatchedStore } from "../unit/watched-store.js";

/** The scripts with which a list finds keys. */
const FINDS_KEYS = /^admin\/(?:scan|here)$/;

let stores: readonly [WatchedStore, WatchedStore, WatchedStore];
let quorum: Holdfast;
/** A Holdfast that uses only the first server. */
let single: Holdfast;
/** Clients of other single servers. */
const others: Holdfast[] = [];
const shared = { commandTimeoutMs: LONG_MS, failoverGrace: "off" } as const;
beforeEach(() => {
  const keyspaces = [new Keyspace(), new Keyspace(), new Keyspace()] as const;
  const [first, second, third] = keyspaces.map((keyspace) => new WatchedStore(keyspace));
  stores = [first as WatchedStore, second as WatchedStore, third as WatchedStore];
  quorum = createHoldfast({ redlock: stores, commandTimeoutMs: LONG_MS });
  single = createHoldfast({ store: new WatchedStore(keyspaces[0]), ...shared });
});
afterEach(async () => {
  for (const store of stores) store.fateOf = () => "answered";
  await Promise.all([quorum, single, ...others.splice(0)].map((holdfast) => holdfast.close()));
});

test("a server that is lost after its keys were found is reported, and is not asked again", async () => {
  const names = Array.from({ length: 120 }, (_, i) => `job:${i}`);
  await Promise.all(names.map((name) => single.mutex(name).acquire()));
  expect(await surveyAll(quorum)).toMatchObject({ unreachable: 0, locks: { length: 120 } });
  const [first] = stores;
  first.fateOf = ({ name }) => (FINDS_KEYS.test(name) ? "answered" : "reply lost");
  for (const list of [surveyAll, survey]) {
    first.taken();
    expect(await list(quorum)).toMatchObject({ locks: [], unreachable: 1 });
    // A list inspects 50 locks at a time, so at most so many requests were open when the first one failed.
    expect(first.taken().filter((name) => !FINDS_KEYS.test(name)).length).toBeLessThanOrEqual(50);
  }
});

test("a Redlock without a majority is listed as one that may be held, and hides no other lock", async () => {
  await quorum.redlock("ledger").acquire({ leaseMs: 600_000 });
  await single.mutex("nightly").acquire();
  const [, second, third] = stores;
  for (const store of [second, third]) store.fateOf = () => "reply lost";
  const { locks, unreachable } = await surveyAll(quorum);
  expect(unreachable).toBe(2);
  const byName = locks.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  expect(byName).toMatchObject([
    { kind: "redlock", name: "ledger", state: "broken", unreadable: { mayBeHeld: true } },
    { kind: "mutex", name: "nightly", state: "held" },
  ]);
  expect(byName[0]?.unreadable?.reason).toMatch(/server 1 did not reply, server 2 did not reply/);
  expect((await clients(quorum)).flatMap(({ held }) => held.map(({ name }) => name))).toEqual(["nightly"]);
});

test("a server that refuses to list its keys, but not to read a lock, is still asked about each lock", async () => {
  const [first, second] = stores;
  const other = createHoldfast({ store: second, ...shared });
  await Promise.all([single.mutex("nightly").acquire(), other.mutex("nightly").acquire()]);
  first.fateOf = ({ name }) => (name === "admin/scan" ? "refused for good" : "answered");
  expect(await surveyAll(quorum)).toMatchObject({
    locks: [{ name: "nightly", holders: { length: 2 } }],
    unreachable: 1,
  });
  await other.close();
});

test("waiters of a condition are listed although another server is lost", async () => {
  const over = new AbortController();
  const jobs = single.mutex("jobs");
  const waiting = jobs.run(async (lease) => {
    await jobs.condition("full").wait(lease, { waitMs: Infinity, signal: over.signal });
  });
  const [, second] = stores;
  second.fateOf = ({ name }) => (FINDS_KEYS.test(name) ? "answered" : "reply lost");
  await expect
    .poll(async () => await surveyAll(quorum), { timeout: LONG_MS })
    .toMatchObject({ locks: [{ name: "jobs", conditions: [{ name: "full", waiterCount: 1 }] }], unreachable: 1 });
  over.abort();
  await expect(waiting).rejects.toThrow();
});

/** Acquires mutexes on one server, with names that start with the number of the server. */
async function fill(server: number, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, i) => `${server}:${i}`);
  const holdfast = createHoldfast({ store: stores[server] as WatchedStore, ...shared });
  others.push(holdfast);
  await Promise.all(names.map((name) => holdfast.mutex(name).acquire()));
  return names;
}

const LIMIT = 30;

/** Reads all further pages. */
async function rest(from: string | undefined): Promise<{ readonly names: string[]; readonly unreachable: number }> {
  const names: string[] = [];
  let unreachable = 0;
  for (let cursor = from; cursor !== undefined; ) {
    const page = await survey(quorum, { limit: LIMIT, cursor });
    names.push(...page.locks.map(({ name }) => name));
    ({ nextCursor: cursor, unreachable } = page);
  }
  return { names, unreachable };
}

test("if no server replies for a later page, the page rejects, and its cursor works when the servers are back", async () => {
  const all = (await Promise.all([fill(0, 100), fill(1, 100), fill(2, 100)])).flat();
  const first = await survey(quorum, { limit: LIMIT });
  for (const store of stores) store.fateOf = () => "reply lost";
  const cursor = first.nextCursor;
  await expect(survey(quorum, { limit: LIMIT, cursor })).rejects.toThrow(StoreError);
  for (const store of stores) store.fateOf = () => "answered";
  const { names, unreachable } = await rest(cursor);
  expect([...first.locks.map(({ name }) => name), ...names].toSorted()).toEqual(all.toSorted());
  expect(unreachable).toBe(0);
});

test("servers that are lost one after the other make a page reject once none of them replies", async () => {
  await Promise.all([fill(0, 100), fill(1, 100), fill(2, 100)]);
  const [lost, ...left] = stores;
  const first = await survey(quorum, { limit: LIMIT });
  lost.fateOf = () => "reply lost";
  const second = await survey(quorum, { limit: LIMIT, cursor: first.nextCursor });
  expect(second.unreachable).toBe(1);
  for (const store of left) store.fateOf = () => "reply lost";
  await expect(survey(quorum, { limit: LIMIT, cursor: second.nextCursor })).rejects.toThrow(StoreError);
  for (const store of left) store.fateOf = () => "answered";
  const { names, unreachable } = await rest(second.nextCursor);
  const found = new Set([...first.locks, ...second.locks].map(({ name }) => name).concat(names));
  expect([...found].filter((name) => !name.startsWith("0:"))).toHaveLength(200);
  expect(unreachable).toBe(1);
});

test("a list ends without the servers that are lost after another was read completely", async () => {
  await Promise.all([fill(1, 100), fill(2, 100)]);
  const first = await survey(quorum, { limit: LIMIT });
  const [, ...lost] = stores;
  for (const store of lost) store.fateOf = () => "reply lost";
  expect(await rest(first.nextCursor)).toEqual({ names: [], unreachable: 2 });
});

test("a server that is lost only while the locks of a page are inspected is counted on all later pages, once", async () => {
  await Promise.all([fill(0, 100), fill(1, 100)]);
  const [first] = stores;
  first.fateOf = ({ name }) => (FINDS_KEYS.test(name) ? "answered" : "reply lost");
  const cut = await survey(quorum, { limit: LIMIT });
  expect(cut.unreachable).toBe(1);
  first.fateOf = () => "answered";
  const back = await survey(quorum, { limit: LIMIT, cursor: cut.nextCursor });
  // The server replies again, so its further locks are listed, but those of the page before are missing.
  expect(back.locks.filter(({ name }) => name.startsWith("0:")).length).toBeGreaterThan(0);
  expect(back.unreachable).toBe(1);
  first.fateOf = () => "reply lost";
  const again = await survey(quorum, { limit: LIMIT, cursor: back.nextCursor });
  expect(again.unreachable).toBe(1);
  const { names, unreachable } = await rest(again.nextCursor);
  expect(unreachable).toBe(1);
  const found = new Set([cut, back, again].flatMap(({ locks }) => locks.map(({ name }) => name)).concat(names));
  expect([...found].filter((name) => name.startsWith("1:"))).toHaveLength(100);
});

test("a page does not reject if a server replies that was counted as unreachable before", async () => {
  await Promise.all([fill(0, 100), fill(1, 100), fill(2, 100)]);
  const [first, ...others] = stores;
  first.fateOf = ({ name }) => (FINDS_KEYS.test(name) ? "answered" : "reply lost");
  const cut = await survey(quorum, { limit: LIMIT });
  first.fateOf = () => "answered";
  for (const store of others) store.fateOf = () => "reply lost";
  const page = await survey(quorum, { limit: LIMIT, cursor: cut.nextCursor });
  expect(page.locks.length).toBeGreaterThan(0);
  expect(page.unreachable).toBe(3);
});

test("a list ends although the only servers that are left were lost, and another one missed a read after its keys were listed", async () => {
  await Promise.all([fill(0, 5), fill(1, 100), fill(2, 100)]);
  const [complete, ...others] = stores;
  const first = await survey(quorum, { limit: LIMIT });
  expect(first.locks.filter(({ name }) => name.startsWith("0:"))).toHaveLength(5);
  // It does not list keys again, so only the reads of the other servers' locks fail there.
  complete.fateOf = () => "reply lost";
  const second = await survey(quorum, { limit: LIMIT, cursor: first.nextCursor });
  expect(second.unreachable).toBe(1);
  complete.fateOf = () => "answered";
  for (const store of others) store.fateOf = () => "reply lost";
  expect(await rest(second.nextCursor)).toEqual({ names: [], unreachable: 3 });
});

test("an IPv6 address of a server is in brackets, because a port follows it", async () => {
  const hosts = ["::1", "10.0.0.7", "/run/redis.sock"];
  for (const [i, host] of hosts.entries()) {
    const server = host.startsWith("/") ? { host, port: undefined } : { host, port: 6379 };
    Object.assign(stores[i] as WatchedStore, { server: () => server });
  }
  await Promise.all([fill(0, 1), fill(1, 1), fill(2, 1)]);
  const { locks } = await surveyAll(quorum);
  const addresses = new Set(locks.map(({ server }) => server?.address));
  expect(addresses).toEqual(new Set(["/run/redis.sock", "10.0.0.7:6379", "[::1]:6379"]));
});

test("the history says how many servers did not reply, each once, whenever they were lost", async () => {
  for (const name of ["deploy", "nightly"]) await appendHistory(quorum, { what: "skipped", kind: "redlock", name });
  const [first, second, third] = stores;
  const kept = { entries: { length: 2 }, isComplete: true };
  const last = createHoldfast({ store: third, ...shared });
  others.push(last);
  await expect.poll(async () => await searchHistory(last)).toMatchObject(kept);
  // The third server has all events, but the ones that do not reply may have others.
  expect(await searchHistory(quorum)).toMatchObject({ ...kept, unreachable: 0 });
  first.fateOf = () => "reply lost";
  expect(await searchHistory(quorum)).toMatchObject({ ...kept, unreachable: 1 });
  expect(await searchHistory(quorum, { name: "deploy" })).toMatchObject({ entries: { length: 1 }, unreachable: 1 });
  // It lists the names, and does not reply or refuses to when their histories are read.
  for (const fate of ["reply lost", "refused for good"] as const) {
    first.fateOf = ({ name }) => (FINDS_KEYS.test(name) ? "answered" : fate);
    expect(await searchHistory(quorum)).toMatchObject({ ...kept, unreachable: 1 });
  }
  second.fateOf = () => "reply lost";
  expect(await searchHistory(quorum)).toMatchObject({ ...kept, unreachable: 2 });
});

test("a server that is lost while a history is read is not asked for the others", async () => {
  const names = Array.from({ length: 60 }, (_, i) => `job:${i}`);
  await Promise.all(names.map((name) => appendHistory(quorum, { what: "skipped", kind: "redlock", name })));
  const [first] = stores;
  first.fateOf = ({ name }) => (FINDS_KEYS.test(name) ? "answered" : "reply lost");
  first.taken();
  expect(await searchHistory(quorum, { limit: 100 })).toMatchObject({ entries: { length: 60 }, unreachable: 1 });
  // Twenty histories are read at a time.
  expect(first.taken().filter((name) => !FINDS_KEYS.test(name)).length).toBeLessThanOrEqual(20);
});

test("without a reply from any server, reading the history rejects", async () => {
  await appendHistory(quorum, { what: "skipped", kind: "redlock", name: "deploy" });
  for (const store of stores) store.fateOf = ({ name }) => (FINDS_KEYS.test(name) ? "answered" : "reply lost");
  await expect(searchHistory(quorum)).rejects.toThrow(StoreError);
});
