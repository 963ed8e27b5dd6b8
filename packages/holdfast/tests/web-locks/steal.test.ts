/** The script behind `steal`, with repeated and late requests, and the order of the requests of one process. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lockKeys } from "../../src/core/keys.js";
import { type AcquireReply, type Claim, OwnClaim } from "../../src/core/protocol.js";
import type { Store } from "../../src/core/store.js";
import { webLocksSteal } from "../../src/generated/web-locks.js";
import type { PermitsProtocol } from "../../src/permits/protocol.js";
import { readWriteLockProtocol } from "../../src/read-write-lock/read-write-lock.js";
import { until } from "../../src/testing/delays.js";
import { type Entrant, Line } from "../../src/web-locks/line.js";

const TIMEOUT_MS = 5_000;
const LEASE_MS = 1_000;
const EVERYTHING = 1_000_000;
const keys = lockKeys("hf", "read-write-lock", "a");

let nowUs: number;
let store: Store;
let keyspace: Keyspace;
let protocol: PermitsProtocol;
let heard: string[];
let last = 0;

beforeEach(async () => {
  nowUs = 1_763_711_220_000_000;
  heard = [];
  keyspace = new Keyspace({ clock: { nowUs: () => nowUs } });
  store = embedded({ keyspace });
  protocol = readWriteLockProtocol({ store, name: "a", keys, inbox: "in:" });
  await store.inbox("in:c", (message) => void heard.push(message), TIMEOUT_MS);
});
afterEach(() => store.close());

function pass(ms: number): void {
  nowUs += ms * 1_000;
}

function claim(amount: number): Claim {
  last += 1;
  return new OwnClaim({ clientId: "c", number: last, leaseMs: LEASE_MS, amount, label: "", handOffMs: LEASE_MS });
}

async function ask(amount: number, enqueue = false): Promise<{ claim: Claim; reply: AcquireReply }> {
  const asked = claim(amount);
  return { claim: asked, reply: await protocol.acquire(asked, enqueue, TIMEOUT_MS) };
}

/** Returns the reply of the script as the server sends it. */
async function steal({ owner }: Claim): Promise<unknown> {
  const base = keys.base;
  const names = ["", ":fence", ":holders", ":slots", ":queue", ":pause", ":steals"].map((suffix) => base + suffix);
  return store.run(webLocksSteal, names, [owner, LEASE_MS, EVERYTHING, "in:", ""], TIMEOUT_MS);
}

async function holders(): Promise<readonly string[]> {
  const { holders: found, used } = await protocol.inspect(undefined, TIMEOUT_MS);
  expect(used).toBe(found.reduce((sum, { weight }) => sum + weight, 0));
  return found.map(({ owner }) => owner);
}

function release(held: Claim, token: unknown): Promise<string> {
  return protocol.release({ claim: held, token: Number(token), slots: [] }, TIMEOUT_MS);
}

describe("a steal", () => {
  test("ends every hold, notifies each holder, and takes a token above all others", async () => {
    const readers = await Promise.all(Array.from({ length: 200 }, () => ask(1)));
    const thief = claim(EVERYTHING);
    const token = await steal(thief);
    expect(await holders()).toEqual([thief.owner]);
    for (const { reply } of readers) expect(token).toBeGreaterThan("token" in reply ? reply.token : Infinity);
    await until(() => heard.length === readers.length, "the messages");
    expect(heard.toSorted()).toEqual(readers.map((reader) => `-${reader.claim.number}`).toSorted());
    for (const reader of readers.slice(0, 3)) {
      const { reply } = reader;
      expect(await release(reader.claim, "token" in reply ? reply.token : 0)).toBe("claimed");
    }
    expect(await holders()).toEqual([thief.owner]);
  });

  test("leaves the queue as it is, and its release grants the head", async () => {
    await ask(EVERYTHING);
    const waiting = [await ask(EVERYTHING, true), await ask(1, true)];
    const thief = claim(EVERYTHING);
    const token = await steal(thief);
    const { waiters } = await protocol.inspect(undefined, TIMEOUT_MS);
    expect(waiters).toEqual(waiting.map((one) => one.claim.owner));
    expect(await release(thief, token)).toBe("released");
    expect(await holders()).toEqual([waiting[0]?.claim.owner]);
  });

  test("that is requested again gets the same token and renews the lease", async () => {
    const thief = claim(EVERYTHING);
    const token = await steal(thief);
    pass(LEASE_MS - 1);
    expect(await steal(thief)).toBe(token);
    pass(LEASE_MS - 1);
    expect(await holders()).toEqual([thief.owner]);
  });

  test("that arrives late, after its hold has ended, ends no later hold", async () => {
    const thief = claim(EVERYTHING);
    const token = await steal(thief);
    await release(thief, token);
    const next = await ask(1);
    expect(await steal(thief)).toEqual([0]);
    expect(await holders()).toEqual([next.claim.owner]);
    const other = claim(EVERYTHING);
    await steal(other);
    expect(await steal(thief)).toEqual([0]);
    expect(await holders()).toEqual([other.owner]);
  });

  test("of a paused lock ends nothing", async () => {
    const held = await ask(1);
    await keyspace.eval("return redis.call('SET', KEYS[1], 'x', 'PX', 5000)", [`${keys.base}:pause`]);
    expect(await steal(claim(EVERYTHING))).toEqual([1, 5_000, nowUs, "x"]);
    expect(await holders()).toEqual([held.claim.owner]);
  });

  test("works even if the server has lost the ends of the holders' leases", async () => {
    await ask(1);
    await keyspace.eval("return redis.call('DEL', KEYS[1])", [`${keys.base}:holders`]);
    const thief = claim(EVERYTHING);
    const token = await steal(thief);
    expect(await holders()).toEqual([thief.owner]);
    expect(await release(thief, token)).toBe("released");
    expect((await ask(EVERYTHING)).reply.outcome).toBe("granted");
  });
});

describe("the line of a process's requests", () => {
  const enter = (line: Line, sent: string[], name: string, isShared = false) => {
    const entrant = { isShared, go: () => void sent.push(name) };
    line.enter(entrant);
    return entrant;
  };

  test("sends a request once all before it have their places, and consecutive shared requests together", () => {
    const [line, sent] = [new Line(), [] as string[]];
    const first = enter(line, sent, "first");
    const shared = ["a", "b", "c"].map((name) => enter(line, sent, name, true));
    enter(line, sent, "last");
    expect(sent).toEqual(["first"]);
    line.placed(first);
    expect(sent).toEqual(["first", "a", "b", "c"]);
    for (const one of shared) line.placed(one);
    expect(sent).toEqual(["first", "a", "b", "c", "last"]);
  });

  test("forgets a request that is given up before it is sent", async () => {
    const [line, sent] = [new Line(), [] as string[]];
    const first = enter(line, sent, "first");
    line.placed(enter(line, sent, "given up"));
    const passed = line.passed();
    line.placed(first);
    await passed;
    expect([sent, line.isEmpty]).toEqual([["first"], true]);
  });

  test("lets a query pass once all requests before it have their places, however many come later", async () => {
    const [line, sent] = [new Line(), [] as string[]];
    const [first, second] = ["first", "second"].map((name) => enter(line, sent, name)) as [Entrant, Entrant];
    const query = line.passed().then(() => sent.push("query"));
    const later = enter(line, sent, "later");
    line.placed(first);
    await Promise.resolve();
    expect(sent).toEqual(["first", "second"]);
    line.placed(second);
    await query;
    expect([sent, line.isEmpty]).toEqual([["first", "second", "later", "query"], false]);
    line.placed(later);
    expect(line.isEmpty).toBe(true);
  });

  test("sends all requests in order if one gets no reply", () => {
    const [line, sent] = [new Line(), [] as string[]];
    const first = enter(line, sent, "first");
    for (const name of ["a", "b", "c"]) enter(line, sent, name);
    line.unanswered(first);
    expect(sent).toEqual(["first", "a", "b", "c"]);
    line.unanswered(first);
    expect(line.isEmpty).toBe(false);
  });
});
