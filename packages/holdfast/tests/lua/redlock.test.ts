/**
 * Each Redlock script in isolation, on the embedded interpreter and on a real server: the state before, one call, its
 * reply, the state after.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import {
  redlockAcquire,
  redlockConfirm,
  redlockExtend,
  redlockInspect,
  redlockRelease,
} from "../../src/generated/scripts.js";
import { embeddedSide, realSide, type Side } from "../differential/two-servers.js";

const KEYS: Readonly<Record<string, string>> = { lock: "hf:redlock:{t}", fence: "hf:redlock:{t}:fence" };
const CHANNEL = "hf:redlock:{t}:wake";
const A = "A/1/30000/1";
const B = "B/2/30000/1";
const LEASE_MS = 30_000;
const BEYOND_MS = 600_000;
const PAST = 1_600_000_000_000_000;
/** Stops short of 2^53 because the parser of ioredis rounds the last numbers below it. */
const NEAR_THE_END = Number.MAX_SAFE_INTEGER - 100;
/** A key's remaining lifetime may be this much shorter than expected because a test may be slow. */
const SLOW_MS = 15_000;

/** A lock on one server: its holder and its number, each with the remaining lifetime. */
interface State {
  readonly lock?: readonly [owner: string, leftMs: number];
  readonly fence?: readonly [number: number | "now", leftMs: number];
}

interface Row {
  readonly name: string;
  readonly script: Script;
  readonly before?: State;
  readonly args: Readonly<Record<string, string | number>>;
  /** `rest` means the remaining lease, `now` the server's clock. */
  readonly reply: unknown;
  /** The same as `before` if omitted. */
  readonly after?: State;
  readonly heard?: readonly string[];
}

const LATER_MS = 3 * LEASE_MS;
const free: State = { fence: [PAST, BEYOND_MS] };
const heldByA: State = { lock: [A, LEASE_MS], fence: [PAST, LEASE_MS + BEYOND_MS] };
const shortHeldByA: State = { lock: [A, LEASE_MS / 2], fence: [PAST, LEASE_MS / 2 + BEYOND_MS] };
const longHeldByA: State = { lock: [A, LATER_MS], fence: [PAST, LATER_MS + BEYOND_MS] };
const stood = (number: number | "now", of: State = heldByA): State => ({ ...of, fence: [number, of.fence?.[1] ?? 0] });

const ROWS: readonly Row[] = [
  {
    name: "takes a lock that the server has never seen, with a number from the server clock",
    script: redlockAcquire,
    before: {},
    args: { owner: A },
    reply: [0, "now"],
    after: stood("now"),
  },
  {
    name: "takes a free lock with the next number, even if that is far behind the clock",
    script: redlockAcquire,
    before: free,
    args: { owner: A },
    reply: [0, PAST + 1],
    after: stood(PAST + 1),
  },
  {
    name: "counts exactly up to just below 2^53",
    script: redlockAcquire,
    before: { fence: [NEAR_THE_END - 1, BEYOND_MS] },
    args: { owner: A },
    reply: [0, NEAR_THE_END],
    after: stood(NEAR_THE_END),
  },
  {
    name: "repeats the number to the holder, and renews its lease",
    script: redlockAcquire,
    before: shortHeldByA,
    args: { owner: A },
    reply: [0, PAST],
    after: heldByA,
  },
  {
    name: "does not shorten a lease for a late copy of the request",
    script: redlockAcquire,
    before: longHeldByA,
    args: { owner: A },
    reply: [0, PAST],
  },
  {
    name: "gives a holder whose number is gone a number from the clock",
    script: redlockAcquire,
    before: { lock: [A, LEASE_MS] },
    args: { owner: A },
    reply: [0, "now"],
    after: stood("now"),
  },
  {
    name: "refuses a claim that is not the holder, and reports the remaining lease",
    script: redlockAcquire,
    before: heldByA,
    args: { owner: B },
    reply: [1, "rest"],
  },
  {
    name: "raises the server to the token if the holder has the number that it reported",
    script: redlockConfirm,
    before: shortHeldByA,
    args: { owner: A, reported: PAST, token: PAST + 7 },
    reply: 1,
    after: stood(PAST + 7),
  },
  {
    name: "confirms again for a holder that already has the token",
    script: redlockConfirm,
    before: stood(PAST + 7),
    args: { owner: A, reported: PAST, token: PAST + 7 },
    reply: 1,
  },
  {
    name: "does not shorten a lease for a late copy of the confirmation",
    script: redlockConfirm,
    before: longHeldByA,
    args: { owner: A, reported: PAST, token: PAST + 7 },
    reply: 1,
    after: stood(PAST + 7, longHeldByA),
  },
  {
    name: "refuses a claim that does not hold the lock",
    script: redlockConfirm,
    before: heldByA,
    args: { owner: B, reported: PAST, token: PAST + 7 },
    reply: 2,
  },
  {
    name: "refuses a holder whose lease has ended, even without a later holder",
    script: redlockConfirm,
    before: free,
    args: { owner: A, reported: PAST, token: PAST + 7 },
    reply: 2,
  },
  {
    name: "refuses a holder that a late copy granted again with a higher number than it reported",
    script: redlockConfirm,
    before: stood(PAST + 2),
    args: { owner: A, reported: PAST, token: PAST + 1 },
    reply: 2,
  },
  {
    name: "refuses a holder whose number is gone",
    script: redlockConfirm,
    before: { lock: [A, LEASE_MS] },
    args: { owner: A, reported: PAST, token: PAST + 7 },
    reply: 2,
  },
  {
    name: "never lowers the number of the server",
    script: redlockConfirm,
    before: heldByA,
    args: { owner: A, reported: PAST, token: PAST - 1 },
    reply: 2,
  },
  {
    name: "renews the lease of the holder, and lets the number outlive it",
    script: redlockExtend,
    before: shortHeldByA,
    args: { owner: A, standing: PAST },
    reply: 1,
    after: heldByA,
  },
  {
    name: "does not shorten a longer lease",
    script: redlockExtend,
    before: longHeldByA,
    args: { owner: A, standing: PAST },
    reply: 1,
  },
  {
    name: "does not extend the lease of another owner",
    script: redlockExtend,
    before: shortHeldByA,
    args: { owner: B, standing: PAST },
    reply: 2,
  },
  {
    name: "does not extend a lease that a late copy of the acquire holds under another number",
    script: redlockExtend,
    before: shortHeldByA,
    args: { owner: A, standing: PAST - 1 },
    reply: 2,
  },
  {
    name: "does not extend a lease whose number is not known",
    script: redlockExtend,
    before: shortHeldByA,
    args: { owner: A, standing: 0 },
    reply: 2,
  },
  {
    name: "extends a lease whose number was deleted, because there was no later grant",
    script: redlockExtend,
    before: { lock: [A, LEASE_MS / 2] },
    args: { owner: A, standing: PAST },
    reply: 1,
    after: { lock: [A, LEASE_MS] },
  },
  {
    name: "does not re-create a hold that has ended",
    script: redlockExtend,
    before: free,
    args: { owner: A, standing: PAST },
    reply: 2,
  },
  {
    name: "frees the lock, keeps its number, and notifies waiters of the hold that ended",
    script: redlockRelease,
    before: heldByA,
    args: { owner: A },
    reply: [1, 1],
    after: { fence: [PAST, LEASE_MS + BEYOND_MS] },
    heard: [`${CHANNEL} ${A}`],
  },
  {
    name: "does not free the lock of another owner, and notifies no waiter",
    script: redlockRelease,
    before: heldByA,
    args: { owner: B },
    reply: [2],
  },
  {
    name: "replies no to a holder that has already released",
    script: redlockRelease,
    before: free,
    args: { owner: A },
    reply: [2],
  },
  {
    name: "reports the holder, its lease, and the number",
    script: redlockInspect,
    before: heldByA,
    args: {},
    reply: [1, PAST, "rest", A],
  },
  {
    name: "reports the last number of a free lock",
    script: redlockInspect,
    before: free,
    args: {},
    reply: [0, PAST, -2],
  },
  {
    name: "reports that the server knows nothing",
    script: redlockInspect,
    before: {},
    args: {},
    reply: [0, 0, -2],
  },
];

describe.each([
  ["the embedded interpreter", embeddedSide],
  ["a real server", realSide],
])("on %s", (_, open) => {
  let side: Side;
  beforeAll(async () => {
    side = await open([CHANNEL]);
  });
  beforeEach(() => side.clear());
  afterAll(() => side.stop());

  async function run(script: Script, args: Readonly<Record<string, string | number>>): Promise<unknown> {
    const given: Readonly<Record<string, string | number>> = { leaseMs: LEASE_MS, channel: CHANNEL, ...args };
    return side.eval(
      script.source,
      script.keys.map((key) => KEYS[key] ?? ""),
      script.args.map((word) => given[word] ?? ""),
    );
  }

  async function put({ lock, fence }: State): Promise<void> {
    const set = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])";
    if (lock) await side.eval(set, [KEYS.lock ?? ""], lock);
    if (fence) await side.eval(set, [KEYS.fence ?? ""], fence);
  }

  async function nowUs(): Promise<number> {
    const time = (await side.eval("return redis.call('TIME')", [], [])) as [string, string];
    return Number(time[0]) * 1_000_000 + Number(time[1]);
  }

  /** Asserts that the state is `wanted`, where `now` is a time between `startUs` and `endUs`. */
  async function expectState(wanted: State, startUs: number, endUs: number): Promise<void> {
    const seen = new Map((await side.dump()).map(({ key, value, leftMs }) => [key, [value, leftMs] as const]));
    const expected = new Map<string, readonly [string | number, number]>();
    if (wanted.lock) expected.set(KEYS.lock ?? "", wanted.lock);
    if (wanted.fence) expected.set(KEYS.fence ?? "", wanted.fence);
    expect([...seen.keys()].sort()).toEqual([...expected.keys()].sort());
    for (const [key, [value, leftMs]] of expected) {
      const [is, left] = seen.get(key) ?? ["", 0];
      if (value === "now") {
        expect(Number(is)).toBeGreaterThanOrEqual(startUs);
        expect(Number(is)).toBeLessThanOrEqual(endUs);
      } else {
        expect(is).toBe(String(value));
      }
      expect(left).toBeLessThanOrEqual(leftMs);
      expect(left).toBeGreaterThan(leftMs - SLOW_MS);
    }
  }

  function worded(reply: unknown, startUs: number, endUs: number): unknown {
    if (Array.isArray(reply)) return reply.map((item) => worded(item, startUs, endUs));
    if (typeof reply !== "number") return reply;
    if (reply >= startUs && reply <= endUs) return "now";
    return reply > LEASE_MS - SLOW_MS && reply <= LEASE_MS ? "rest" : reply;
  }

  test.each(ROWS.map((row) => [row.script.name, row.name, row] as const))(
    "%s %s",
    async (_script, _name, { script, before = {}, args, reply, after = before, heard = [] }) => {
      await put(before);
      const startUs = await nowUs();
      const answer = await run(script, args);
      const endUs = await nowUs();
      expect(worded(answer, startUs, endUs)).toEqual(reply);
      await expectState(after, startUs, endUs);
      expect(await side.messages()).toEqual(heard);
    },
  );

  test("a late copy of an acquire cannot confirm a token that another client has had", async () => {
    // This server's last number was 4. A second server gave A the number 6, so A's token is 6.
    await put({ fence: [4, BEYOND_MS] });
    expect(await run(redlockAcquire, { owner: A })).toEqual([0, 5]);
    await side.eval("return redis.call('DEL', KEYS[1])", [KEYS.lock ?? ""], []);
    expect(await run(redlockAcquire, { owner: B })).toEqual([0, 6]);
    expect(await run(redlockRelease, { owner: B })).toEqual([1, 1]);
    expect(await run(redlockAcquire, { owner: A })).toEqual([0, 7]);
    expect(await run(redlockConfirm, { owner: A, reported: 5, token: 6 })).toBe(2);
  });

  test("consecutive holders on one server never share a number, even if requests repeat", async () => {
    expect(await run(redlockAcquire, { owner: A })).toMatchObject([0, expect.any(Number)]);
    const [, first] = (await run(redlockAcquire, { owner: A })) as [number, number];
    expect(await run(redlockConfirm, { owner: A, reported: first, token: first + 3 })).toBe(1);
    expect(await run(redlockAcquire, { owner: A })).toEqual([0, first + 3]);
    expect(await run(redlockRelease, { owner: A })).toEqual([1, 1]);
    expect(await run(redlockAcquire, { owner: B })).toEqual([0, first + 4]);
    expect(await run(redlockExtend, { owner: A, standing: first + 4 })).toBe(2);
    expect(await run(redlockRelease, { owner: A })).toEqual([2]);
    expect(await run(redlockExtend, { owner: B, standing: first + 4 })).toBe(1);
    expect(await run(redlockRelease, { owner: B })).toEqual([1, 1]);
  });
});
