/** Each mutex script in isolation: the state before, one call, its reply, the state after. */
import { describe, expect, test } from "vitest";
import { EXPIRY_TIMES } from "../../../../tests/support/lifetimes.js";
import type { Script } from "../../src/core/store.js";
import {
  mutexAcquire,
  mutexAdopt,
  mutexExtend,
  mutexForceRelease,
  mutexInspect,
  mutexLeave,
  mutexRelease,
  mutexRenew,
} from "../../src/generated/scripts.js";
import { KEYS, type LockState, ScriptServer } from "./script-server.js";

const server = new ScriptServer();

/** Clients A and B are subscribed to their inboxes. C and D are not, so they count as crashed. */
const A = "A/1/30000/1";
const B = "B/2/40000/1/second%20one";
const C = "C/3/30000/1";
const D = "D/4/30000/1";
const PAST = 1_600_000_000_000_000;
const AHEAD = 4_000_000_000_000_000;
const GARBAGE = ["", "x", "a/b/c/d", "A/x/30000/1", "A/1/30000", "\u0000", "🔐", " A/1/30000/1/"];

interface Row {
  readonly name: string;
  readonly before?: LockState;
  readonly args: Readonly<Record<string, string | number>>;
  /** A number, or a list in which `rest` and `now` replace values that depend on the clock. */
  readonly reply: unknown;
  /** The state without the fence, which `fence` describes. */
  readonly after: LockState;
  /** The fence afterward: a new token, or this number. */
  readonly fence?: "new" | number;
  readonly heard?: readonly string[];
}

/** Replaces values that depend on the clock with words. */
function worded(reply: unknown, startUs: number, endUs: number): unknown {
  if (Array.isArray(reply)) return reply.map((item) => worded(item, startUs, endUs));
  if (typeof reply !== "number") return reply;
  if (reply >= startUs && reply <= endUs) return "now";
  return reply > 1_000 && reply <= 60_000 ? "rest" : reply;
}

function rows(script: Script, table: readonly Row[]): void {
  describe(script.name, () => {
    test.each(table.map((row) => [row.name, row] as const))(
      "%s",
      async (_, { before = {}, args, reply, after, fence, heard = [] }) => {
        await server.set(before);
        const startUs = await server.nowUs();
        const answer = await server.run(script, args);
        const endUs = await server.nowUs();
        expect(worded(answer, startUs, endUs)).toEqual(reply);
        const { fence: last, ...rest } = await server.state();
        expect(rest).toEqual(after);
        if (fence === "new") {
          expect(last).toBeGreaterThanOrEqual(startUs);
          expect(last).toBeLessThanOrEqual(endUs + 10);
        } else {
          expect(last).toBe(fence);
        }
        const said = (await server.messages()).map((message) => message.replace(/ \d{16} \d{16}$/, " token now"));
        expect(said).toEqual(heard);
        // Every remaining key expires.
        for (const left of Object.values(await server.lifetimes())) expect(left).not.toBe(-1);
      },
    );
  });
}

const GRANT_B = "B +2 token now";

rows(mutexAcquire, [
  { name: "takes a free lock", args: { owner: A }, reply: "now", after: { lock: A }, fence: "new" },
  {
    name: "takes a free lock whose last token is behind the clock",
    before: { fence: PAST },
    args: { owner: A },
    reply: "now",
    after: { lock: A },
    fence: "new",
  },
  {
    name: "continues from a last token that is ahead of the clock",
    before: { fence: AHEAD },
    args: { owner: A },
    reply: AHEAD + 1,
    after: { lock: A },
    fence: AHEAD + 1,
  },
  {
    name: "reserves a block after a last token that is ahead of the clock",
    before: { fence: AHEAD },
    args: { owner: A, block: 32 },
    reply: AHEAD + 1,
    after: { lock: A },
    fence: AHEAD + 32,
  },
  {
    name: "repeats the grant to the holder",
    before: { lock: A, fence: PAST },
    args: { owner: A },
    reply: PAST,
    after: { lock: A },
    fence: PAST,
  },
  {
    name: "repeats the first token to the holder of a block",
    before: { lock: A, fence: PAST + 31 },
    args: { owner: A, block: 32 },
    reply: PAST,
    after: { lock: A },
    fence: PAST + 31,
  },
  {
    name: "gives a new token to a holder whose token is gone",
    before: { lock: A },
    args: { owner: A },
    reply: "now",
    after: { lock: A },
    fence: "new",
  },
  {
    name: "queues behind a holder",
    before: { lock: A, fence: PAST },
    args: { owner: B },
    reply: [0, "rest", "now"],
    after: { lock: A, queue: [B] },
    fence: PAST,
  },
  {
    name: "queues a claim once, in its first place, if the request is repeated",
    before: { lock: A, fence: PAST, queue: [B, C] },
    args: { owner: B },
    reply: [0, "rest", "now"],
    after: { lock: A, queue: [B, C] },
    fence: PAST,
  },
  {
    name: "queues behind earlier waiters",
    before: { lock: A, fence: PAST, queue: [C, D] },
    args: { owner: B },
    reply: [0, "rest", "now"],
    after: { lock: A, queue: [C, D, B] },
    fence: PAST,
  },
  {
    name: "refuses a claim that cannot wait, and does not queue it",
    before: { lock: A, fence: PAST },
    args: { owner: B, enqueue: 0 },
    reply: [1, "rest", "now"],
    after: { lock: A },
    fence: PAST,
  },
  {
    name: "waits for a foreign holder",
    before: { lock: "somebody else" },
    args: { owner: A },
    reply: [0, "rest", "now"],
    after: { lock: "somebody else", queue: [A] },
  },
  {
    name: "promotes the head of the queue when the lease expired, and queues the caller",
    before: { fence: PAST, queue: [B] },
    args: { owner: A },
    reply: [0, "rest", "now"],
    after: { lock: B, queue: [A] },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "promotes the head of the queue for a caller that cannot wait",
    before: { fence: PAST, queue: [B] },
    args: { owner: A, enqueue: 0 },
    reply: [1, "rest", "now"],
    after: { lock: B },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "promotes the caller itself, which needs no message, when it is the head",
    before: { fence: PAST, queue: [A, B] },
    args: { owner: A },
    reply: "now",
    after: { lock: A, queue: [B] },
    fence: "new",
  },
  {
    name: "skips crashed waiters at the head, and grants the caller",
    before: { fence: PAST, queue: [C, D] },
    args: { owner: A },
    reply: "now",
    after: { lock: A },
    fence: "new",
  },
  {
    name: "skips crashed waiters, and grants a caller that cannot wait",
    before: { fence: PAST, queue: [C, D] },
    args: { owner: A, enqueue: 0 },
    reply: "now",
    after: { lock: A },
    fence: "new",
  },
  {
    name: "drops entries that are not claims from the queue",
    before: { fence: PAST, queue: GARBAGE },
    args: { owner: A },
    reply: "now",
    after: { lock: A },
    fence: "new",
  },
  {
    name: "promotes with a token after one that is ahead of the clock",
    before: { fence: AHEAD, queue: [A] },
    args: { owner: A },
    reply: AHEAD + 1,
    after: { lock: A },
    fence: AHEAD + 1,
  },
]);

rows(mutexRelease, [
  {
    name: "frees the lock and keeps the last token when there is no waiter",
    before: { lock: A, fence: PAST },
    args: { owner: A, token: PAST },
    reply: 1,
    after: {},
    fence: PAST,
  },
  {
    name: "hands over to the first waiter, and notifies it",
    before: { lock: A, fence: PAST, queue: [B, A] },
    args: { owner: A, token: PAST },
    reply: 1,
    after: { lock: B, queue: [A] },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "hands over with a token above one that is ahead of the clock",
    before: { lock: A, fence: AHEAD, queue: [B] },
    args: { owner: A, token: AHEAD },
    reply: 1,
    after: { lock: B },
    fence: AHEAD + 1,
    heard: [GRANT_B],
  },
  {
    name: "skips crashed waiters",
    before: { lock: A, fence: PAST, queue: [C, D, B] },
    args: { owner: A, token: PAST },
    reply: 1,
    after: { lock: B },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "frees the lock and issues no token when all waiters have crashed",
    before: { lock: A, fence: PAST, queue: [C, D] },
    args: { owner: A, token: PAST },
    reply: 1,
    after: {},
    fence: PAST,
  },
  {
    name: "skips garbage in the queue",
    before: { lock: A, fence: PAST, queue: [...GARBAGE, B] },
    args: { owner: A, token: PAST },
    reply: 1,
    after: { lock: B },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "reports that there was no later grant",
    before: { fence: PAST },
    args: { owner: A, token: PAST },
    reply: 2,
    after: {},
    fence: PAST,
  },
  {
    name: "reports a later grant whose owner still holds",
    before: { lock: B, fence: PAST + 5 },
    args: { owner: A, token: PAST },
    reply: 3,
    after: { lock: B },
    fence: PAST + 5,
  },
  {
    name: "reports a later grant whose owner is gone",
    before: { fence: PAST + 5 },
    args: { owner: A, token: PAST },
    reply: 3,
    after: {},
    fence: PAST + 5,
  },
  {
    name: "counts a foreign holder as a later grant",
    before: { lock: "somebody else", fence: PAST },
    args: { owner: A, token: PAST },
    reply: 3,
    after: { lock: "somebody else" },
    fence: PAST,
  },
  { name: "reports that nothing is known", args: { owner: A, token: PAST }, reply: 4, after: {} },
  {
    name: "reports that only older tokens are known",
    before: { fence: PAST - 1 },
    args: { owner: A, token: PAST },
    reply: 4,
    after: {},
    fence: PAST - 1,
  },
  {
    name: "does not change the queue if the caller does not hold the lock",
    before: { lock: B, fence: PAST + 5, queue: [A, C] },
    args: { owner: A, token: PAST },
    reply: 3,
    after: { lock: B, queue: [A, C] },
    fence: PAST + 5,
  },
  {
    name: "hands a lock that this client has deleted to the first waiter",
    before: { fence: PAST, queue: [C, B] },
    args: { owner: A, token: PAST, freed: 1 },
    reply: 5,
    after: { lock: B },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "leaves the queue of an expired lock unchanged if this client has not deleted the lock",
    before: { fence: PAST, queue: [B] },
    args: { owner: A, token: PAST },
    reply: 2,
    after: { queue: [B] },
    fence: PAST,
  },
  {
    name: "hands on nothing if another claim has been granted since the client deleted the lock",
    before: { fence: PAST + 5, queue: [B] },
    args: { owner: A, token: PAST, freed: 1 },
    reply: 3,
    after: { queue: [B] },
    fence: PAST + 5,
  },
  {
    name: "does not take the lock from a later holder if the client may have deleted its own",
    before: { lock: B, fence: PAST + 5, queue: [C] },
    args: { owner: A, token: PAST, freed: 1 },
    reply: 3,
    after: { lock: B, queue: [C] },
    fence: PAST + 5,
  },
  {
    name: "releases a lock that the client could not delete",
    before: { lock: A, fence: PAST, queue: [B] },
    args: { owner: A, token: PAST, freed: 1 },
    reply: 1,
    after: { lock: B },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "does nothing for a deleted lock without waiters",
    before: { fence: PAST },
    args: { owner: A, token: PAST, freed: 1 },
    reply: 2,
    after: {},
    fence: PAST,
  },
  {
    name: "hands on a deleted lock even if its token is no longer known",
    before: { queue: [B] },
    args: { owner: A, token: PAST, freed: 1 },
    reply: 5,
    after: { lock: B },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "reports that nothing is known about a lock that may have been deleted",
    args: { owner: A, token: PAST, freed: 1 },
    reply: 4,
    after: {},
  },
]);

rows(mutexExtend, [
  {
    name: "extends the hold of its owner",
    before: { lock: A, fence: PAST },
    args: { owner: A, token: PAST },
    reply: 1,
    after: { lock: A },
    fence: PAST,
  },
  {
    name: "restores a lost token",
    before: { lock: A },
    args: { owner: A, token: PAST },
    reply: 1,
    after: { lock: A },
    fence: PAST,
  },
  {
    name: "refuses an earlier grant of the same claim",
    before: { lock: A, fence: PAST + 1 },
    args: { owner: A, token: PAST },
    reply: 3,
    after: { lock: A },
    fence: PAST + 1,
  },
  {
    name: "does not re-create an expired hold",
    before: { fence: PAST },
    args: { owner: A, token: PAST },
    reply: 2,
    after: {},
    fence: PAST,
  },
  {
    name: "does not change the hold of another owner",
    before: { lock: B, fence: PAST + 1 },
    args: { owner: A, token: PAST },
    reply: 3,
    after: { lock: B },
    fence: PAST + 1,
  },
  { name: "reports that nothing is known", args: { owner: A, token: PAST }, reply: 4, after: {} },
]);

rows(mutexLeave, [
  {
    name: "removes a waiter from the queue",
    before: { lock: A, fence: PAST, queue: [B, C] },
    args: { owner: B },
    reply: 1,
    after: { lock: A, queue: [C] },
    fence: PAST,
  },
  {
    name: "deletes an empty queue",
    before: { lock: A, fence: PAST, queue: [B] },
    args: { owner: B },
    reply: 1,
    after: { lock: A },
    fence: PAST,
  },
  {
    name: "frees a lock that was granted meanwhile",
    before: { lock: A, fence: PAST },
    args: { owner: A },
    reply: 2,
    after: {},
    fence: PAST,
  },
  {
    name: "hands on a lock that was granted meanwhile",
    before: { lock: A, fence: PAST, queue: [C, B] },
    args: { owner: A },
    reply: 2,
    after: { lock: B },
    fence: "new",
    heard: [GRANT_B],
  },
  {
    name: "does nothing for a claim that neither waits nor holds",
    before: { lock: B, fence: PAST, queue: [C] },
    args: { owner: A },
    reply: 0,
    after: { lock: B, queue: [C] },
    fence: PAST,
  },
  { name: "does nothing if the lock does not exist", args: { owner: A }, reply: 0, after: {} },
]);

rows(mutexAdopt, [
  {
    name: "moves the hold and keeps the token",
    before: { lock: A, fence: PAST },
    args: { from: A, to: B, token: PAST },
    reply: 1,
    after: { lock: B },
    fence: PAST,
  },
  {
    name: "repeats the reply to the adopter",
    before: { lock: B, fence: PAST },
    args: { from: A, to: B, token: PAST },
    reply: 1,
    after: { lock: B },
    fence: PAST,
  },
  {
    name: "restores a lost token",
    before: { lock: A },
    args: { from: A, to: B, token: PAST },
    reply: 1,
    after: { lock: B },
    fence: PAST,
  },
  {
    name: "refuses an earlier grant",
    before: { lock: A, fence: PAST + 1 },
    args: { from: A, to: B, token: PAST },
    reply: 3,
    after: { lock: A },
    fence: PAST + 1,
  },
  {
    name: "does not re-create an expired hold",
    before: { fence: PAST },
    args: { from: A, to: B, token: PAST },
    reply: 2,
    after: {},
    fence: PAST,
  },
  {
    name: "does not change the hold of another owner",
    before: { lock: C, fence: PAST + 1 },
    args: { from: A, to: B, token: PAST },
    reply: 3,
    after: { lock: C },
    fence: PAST + 1,
  },
  { name: "reports that nothing is known", args: { from: A, to: B, token: PAST }, reply: 4, after: {} },
]);

rows(mutexForceRelease, [
  {
    name: "ends the hold of the given owner, moves the fence, and notifies the holder",
    before: { lock: A, fence: PAST },
    args: { owner: A, token: "" },
    reply: 1,
    after: {},
    fence: PAST + 1,
    heard: ["A -1"],
  },
  {
    name: "ends the hold with the given token",
    before: { lock: A, fence: PAST },
    args: { owner: "", token: PAST },
    reply: 1,
    after: {},
    fence: PAST + 1,
    heard: ["A -1"],
  },
  {
    name: "hands over to the first waiter in the queue",
    before: { lock: A, fence: PAST, queue: [C, B] },
    args: { owner: A, token: PAST },
    reply: 1,
    after: { lock: B },
    fence: "new",
    heard: ["A -1", GRANT_B],
  },
  {
    name: "does nothing to another owner",
    before: { lock: A, fence: PAST, queue: [C] },
    args: { owner: B, token: "" },
    reply: 0,
    after: { lock: A, queue: [C] },
    fence: PAST,
  },
  {
    name: "does nothing to another grant of the same owner",
    before: { lock: A, fence: PAST },
    args: { owner: A, token: PAST - 1 },
    reply: 0,
    after: { lock: A },
    fence: PAST,
  },
  {
    name: "does nothing for a token when none is known",
    before: { lock: A },
    args: { owner: "", token: PAST },
    reply: 0,
    after: { lock: A },
  },
  {
    name: "does nothing to a free lock, regardless of the last token",
    before: { fence: PAST },
    args: { owner: "", token: PAST },
    reply: 0,
    after: {},
    fence: PAST,
  },
  {
    name: "ends the hold of a foreign client by its value, and notifies no client",
    before: { lock: "somebody else" },
    args: { owner: "somebody else", token: "" },
    reply: 1,
    after: {},
  },
]);

rows(mutexInspect, [
  {
    name: "reports a lock that does not exist",
    args: { owner: "", most: 10 },
    reply: [0, -2, 0, 0, -1, ""],
    after: {},
  },
  {
    name: "reports the last token of a free lock",
    before: { fence: PAST },
    args: { owner: "", most: 10 },
    reply: [0, -2, PAST, 0, -1, ""],
    after: {},
    fence: PAST,
  },
  {
    name: "reports the holder, the waiters in order, and the place of one waiter",
    before: { lock: A, fence: PAST, queue: [D, C, B] },
    args: { owner: B, most: 2 },
    reply: [1, "rest", PAST, 3, 2, "", A, D, C],
    after: { lock: A, queue: [D, C, B] },
    fence: PAST,
  },
  {
    name: "promotes no waiter when the lease expired",
    before: { fence: PAST, queue: [B] },
    args: { owner: A, most: 10 },
    reply: [0, -2, PAST, 1, -1, "", B],
    after: { queue: [B] },
    fence: PAST,
  },
]);

describe("lifetimes", () => {
  test("a grant lasts for its lease, its token ten minutes longer, and a queue for a minute", async () => {
    await server.run(mutexAcquire, { owner: A, leaseMs: 20_000 });
    await server.run(mutexAcquire, { owner: B });
    const { lock, fence, queue } = await server.lifetimes();
    expect(Math.ceil(lock / 2_000)).toBe(10);
    expect(Math.round((fence - lock) / 1_000)).toBe(600);
    expect(Math.ceil(queue / 6_000)).toBe(10);
  });

  test("a hand-over lasts for the lease that the waiter requested", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    await server.run(mutexRelease, { owner: A, token: PAST });
    const { lock, fence } = await server.lifetimes();
    expect(Math.ceil(lock / 4_000)).toBe(10);
    expect(Math.round((fence - lock) / 1_000)).toBe(600);
  });

  test.each([
    ["a repeated acquire", mutexAcquire, { owner: A }],
    ["an extension", mutexExtend, { owner: A, token: PAST }],
    ["a late copy of an adoption", mutexAdopt, { from: B, to: A, token: PAST }],
  ])("%s never shortens a lease, and lengthens a short one", async (_, script, args) => {
    await server.set({ lock: A, fence: PAST }, 500_000);
    await server.run(script, { ...args, leaseMs: 1_000 });
    expect((await server.lifetimes()).lock).toBeGreaterThan(400_000);
    await server.redis.pexpire(KEYS.lock as string, 5_000);
    await server.run(script, { ...args, leaseMs: 100_000 });
    expect((await server.lifetimes()).lock).toBeGreaterThan(90_000);
  });

  test("a re-check keeps the queue alive", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    await server.redis.pexpire(KEYS.queue as string, 1_000);
    await server.run(mutexAcquire, { owner: B });
    expect((await server.lifetimes()).queue).toBeGreaterThan(50_000);
  });

  test("inspect changes no lifetime", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    const before = await server.redis.eval(EXPIRY_TIMES, 3, ...Object.values(KEYS).slice(0, 3));
    await server.run(mutexInspect, { owner: "", most: 5 });
    const after = await server.redis.eval(EXPIRY_TIMES, 3, ...Object.values(KEYS).slice(0, 3));
    expect(after).toEqual(before);
  });
});

describe("repeated by the same owner", () => {
  test("release reports that the lock was granted to another client, which keeps it", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    expect(await server.run(mutexRelease, { owner: A, token: PAST })).toBe(1);
    expect(await server.run(mutexRelease, { owner: A, token: PAST })).toBe(3);
    expect(await server.state()).toMatchObject({ lock: B });
  });

  test("release of a lock without waiters reports that no other client was granted since", async () => {
    await server.set({ lock: A, fence: PAST });
    expect([
      await server.run(mutexRelease, { owner: A, token: PAST }),
      await server.run(mutexRelease, { owner: A, token: PAST }),
    ]).toEqual([1, 2]);
  });

  test("leave does nothing the second time", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B, C] });
    expect([await server.run(mutexLeave, { owner: B }), await server.run(mutexLeave, { owner: B })]).toEqual([1, 0]);
    expect([await server.run(mutexLeave, { owner: A }), await server.run(mutexLeave, { owner: A })]).toEqual([2, 0]);
  });

  test("acquire returns the same token, extend and adopt the same reply, and a force-release runs once", async () => {
    const token = Number(await server.run(mutexAcquire, { owner: A }));
    expect(await server.run(mutexAcquire, { owner: A })).toBe(token);
    for (const _ of [1, 2]) expect(await server.run(mutexExtend, { owner: A, token })).toBe(1);
    for (const _ of [1, 2]) expect(await server.run(mutexAdopt, { from: A, to: B, token })).toBe(1);
    expect(await server.run(mutexExtend, { owner: A, token })).toBe(3);
    expect(await server.run(mutexForceRelease, { owner: B, token })).toBe(1);
    expect(await server.run(mutexForceRelease, { owner: B, token })).toBe(0);
    expect(await server.run(mutexRelease, { owner: B, token })).toBe(3);
  });
});

test("release of a force-released grant is refused, even if a late copy of its request was granted", async () => {
  const token = Number(await server.run(mutexAcquire, { owner: A }));
  await server.run(mutexForceRelease, { owner: A, token });
  const again = Number(await server.run(mutexAcquire, { owner: A }));
  expect(again).toBeGreaterThan(token);
  expect(await server.run(mutexRelease, { owner: A, token })).toBe(3);
  expect(await server.state()).toMatchObject({ lock: A });
  expect(await server.run(mutexRelease, { owner: A, token: again })).toBe(1);
});

test("tokens rise and never repeat, for blocks of any size, with and without a hand-over", async () => {
  let last = 0;
  for (let round = 0; round < 60; round += 1) {
    const block = 1 + ((round * 7) % 40);
    const first = Number(await server.run(mutexAcquire, { owner: A, block }));
    expect(first).toBeGreaterThan(last);
    last = first + block - 1;
    if (round % 3 === 0) {
      await server.run(mutexAcquire, { owner: "B/9/30000/25" });
      await server.run(mutexRelease, { owner: A, token: last });
      const granted = (await server.messages()).at(-1)?.split(" ") ?? [];
      expect(Number(granted[2])).toBeGreaterThan(last);
      last = Number(granted[2]) + 24;
      await server.run(mutexRelease, { owner: "B/9/30000/25", token: last });
    } else {
      await server.run(mutexRelease, { owner: A, token: last });
    }
    expect((await server.state()).fence).toBe(last);
  }
});

test("tokens rise even if the last one is lost, because they follow the clock", async () => {
  let last = 0;
  for (let round = 0; round < 20; round += 1) {
    const token = Number(await server.run(mutexAcquire, { owner: A }));
    expect(token).toBeGreaterThan(last);
    last = token;
    await server.redis.flushall();
  }
});

test("one release skips five thousand crashed waiters and grants the one that is alive", async () => {
  const dead = Array.from({ length: 5_000 }, (_, i) => [i + 1, `dead-${i}/1/30000/1`]).flat();
  await server.redis.zadd(KEYS.queue as string, ...(dead as [number, string]));
  await server.redis.zadd(KEYS.queue as string, 6_000, B);
  await server.set({ lock: A, fence: PAST });
  expect(await server.run(mutexRelease, { owner: A, token: PAST })).toBe(1);
  expect(await server.state()).toMatchObject({ lock: B });
  expect((await server.lifetimes()).queue).toBe(-2);
});

test("a waiter with an invalid lease is skipped by the next call at the latest", async () => {
  await server.set({ lock: A, fence: PAST, queue: ["B/5/0/1", B] });
  await server.run(mutexRelease, { owner: A, token: PAST }).catch(() => {});
  await server.run(mutexRelease, { owner: A, token: PAST });
  expect(await server.state()).toMatchObject({ lock: B });
});

describe("after a long extension", () => {
  test("a short extension leaves the token a longer lifetime than the lease", async () => {
    await server.set({ lock: A, fence: PAST }, 5_000_000);
    await server.redis.pexpire(KEYS.fence as string, 5_600_000);
    await server.run(mutexExtend, { owner: A, token: PAST, leaseMs: 1_000 });
    const { lock, fence } = await server.lifetimes();
    expect(fence).toBeGreaterThan(lock);
  });
});

describe.each([
  ["a server with PEXPIRE GT", mutexRenew.source],
  // As Redis 6.2 does, any server refuses an option that it does not know.
  ["a server without it", mutexRenew.source.replaceAll("'GT'", "'NO'")],
])("mutex/renew on %s", (_, source) => {
  const situations: readonly { readonly name: string; readonly before: LockState; readonly token: number }[] = [
    { name: "held by the caller", before: { lock: A, fence: PAST }, token: PAST },
    { name: "held by the caller without a fence", before: { lock: A }, token: PAST },
    { name: "held by the caller by a later grant", before: { lock: A, fence: PAST + 1 }, token: PAST },
    { name: "held by another owner", before: { lock: B, fence: AHEAD }, token: PAST },
    { name: "free without a later grant", before: { fence: PAST }, token: PAST },
    { name: "unknown", before: {}, token: PAST },
    { name: "held by the caller while others wait", before: { lock: A, fence: PAST, queue: [B, C] }, token: PAST },
  ];
  const renew = (leases: string, names: readonly string[]): Promise<unknown> =>
    server.redis.eval(source, names.length, ...names, leases, 60_000);
  const mine = [KEYS.lock, KEYS.fence] as string[];
  const seen = async (): Promise<unknown> => {
    const { lock, fence, queue } = await server.lifetimes();
    return { lives: [lock, fence, queue].map(rounded), state: await server.state() };
  };
  // Rounds up to steps so long that a slow machine does not reach the next one.
  const rounded = (ms: number): number => Math.max(0, Math.ceil(ms / 20_000));

  test.each(situations.map((row) => [row.name, row] as const))(
    "does what mutex/extend does with a lock that is %s, or changes nothing",
    async (name, { before, token }) => {
      await server.set(before, 10_000);
      const untouched = await seen();
      const reply = await renew(`${A} ${token} 30000`, mine);
      const isRenewed = name.startsWith("held by the caller") && before.fence === token;
      expect(reply).toEqual(isRenewed ? [1] : [1, 1]);
      const renewed = await seen();
      if (!isRenewed) expect(renewed).toEqual(untouched);
      await server.redis.flushall();
      await server.set(before, 10_000);
      await server.run(mutexExtend, { owner: A, token, leaseMs: 30_000 });
      if (isRenewed) expect(renewed).toEqual(await seen());
    },
  );

  test("a longer lease is not shortened, but left to mutex/extend", async () => {
    await server.set({ lock: A, fence: PAST }, 60_000);
    expect(await renew(`${A} ${PAST} 30000`, mine)).toEqual([1, 1]);
    expect((await server.lifetimes()).lock).toBeGreaterThan(50_000);
  });

  test("a lock without an expiry is left to mutex/extend, which sets one", async () => {
    await server.set({ lock: A, fence: PAST }, 10_000);
    await server.redis.persist(KEYS.lock as string);
    const [first, ...refused] = (await renew(`${A} ${PAST} 30000`, mine)) as number[];
    expect(first).toBe(1);
    if (refused.length > 0) expect(await server.run(mutexExtend, { owner: A, token: PAST, leaseMs: 30_000 })).toBe(1);
    expect((await server.lifetimes()).lock).toBeGreaterThan(20_000);
  });

  test("a key of the wrong type makes only its own mutex fail", async () => {
    await server.redis.rpush("hf:mutex:{list}", "no lock");
    await server.redis.rpush("hf:mutex:{list}:fence", "no number");
    await server.set({ lock: A, fence: PAST }, 10_000);
    const names = ["hf:mutex:{list}", "hf:mutex:{list}:fence", ...mine];
    expect(await renew(`${A} ${PAST} 30000 ${A} ${PAST} 30000`, names)).toEqual([1, 1]);
    expect((await server.lifetimes()).lock).toBeGreaterThan(20_000);
  });

  test("each of several leases is extended for its own length or refused separately", async () => {
    const names = Array.from({ length: 5 }, (_, i) => [`hf:mutex:{${i}}`, `hf:mutex:{${i}}:fence`]).flat();
    for (const i of [0, 1, 2, 4]) {
      await server.redis.set(`hf:mutex:{${i}}`, i === 1 ? B : A, "PX", 10_000);
      await server.redis.set(`hf:mutex:{${i}}:fence`, PAST + i, "PX", 300_000);
    }
    const leases = [0, 1, 2, 3, 4].map((i) => `${A} ${i === 2 ? PAST : PAST + i} ${i === 4 ? 60_000 : 30_000}`);
    expect(await renew(leases.join(" "), names)).toEqual([1, 2, 3, 4]);
    const livesOf = (suffix: string): Promise<number[]> =>
      Promise.all([0, 1, 2, 3, 4].map((i) => server.redis.pttl(`hf:mutex:{${i}}${suffix}`)));
    expect((await livesOf("")).map(rounded)).toEqual([2, 1, 1, 0, 3]);
    expect((await livesOf(":fence")).map(rounded)).toEqual([32, 15, 15, 0, 33]);
  });
});

/** The same clients with protocol 1, in which a grant by message is short until the client confirms it. */
const A1 = "A/1/30000/1/;3000";
const A9 = "A/9/30000/1/other;3000";
const B1 = "B/2/40000/1/second%20one;3000";

describe("a grant by message", () => {
  const lifetimeOf = async (): Promise<{ lock: number; handed: number }> => server.lifetimes();

  test("lasts for the waiter's handOffMs, and its client is recorded until it is confirmed", async () => {
    await server.set({ lock: A1, fence: PAST, queue: [B1] });
    expect(await server.run(mutexRelease, { owner: A1, token: PAST })).toBe(1);
    expect(await server.state()).toMatchObject({ lock: B1, handed: "B" });
    const { lock, handed } = await lifetimeOf();
    expect(lock).toBeLessThanOrEqual(3_000);
    expect(handed).toBeGreaterThan(40_000);
    const { fence: token } = await server.state();
    expect(await server.run(mutexExtend, { owner: B1, token: token as number, leaseMs: 40_000 })).toBe(1);
    expect((await server.state()).handed).toBeUndefined();
    expect((await lifetimeOf()).lock).toBeGreaterThan(3_000);
  });

  test("to a waiter of protocol 0 lasts for the whole lease because that waiter does not confirm", async () => {
    await server.set({ lock: A1, fence: PAST, queue: [B], handed: "A" });
    await server.run(mutexRelease, { owner: A1, token: PAST });
    expect((await server.state()).handed).toBeUndefined();
    expect((await lifetimeOf()).lock).toBeGreaterThan(30_000);
  });

  test("lasts for the whole lease once the waiter sends a re-check", async () => {
    await server.set({ lock: A1, fence: PAST, queue: [B1] });
    await server.run(mutexRelease, { owner: A1, token: PAST });
    await server.run(mutexAcquire, { owner: B1, leaseMs: 40_000 });
    expect((await server.state()).handed).toBeUndefined();
    expect((await lifetimeOf()).lock).toBeGreaterThan(30_000);
  });

  test("leaves no record if it is released before it is confirmed", async () => {
    await server.set({ lock: A1, fence: PAST, handed: "A" });
    expect(await server.run(mutexRelease, { owner: A1, token: PAST })).toBe(1);
    expect(await server.state()).toEqual({ fence: PAST });
  });

  test.each([mutexLeave, mutexForceRelease])("leaves no record if it is revoked: $name", async (script) => {
    await server.set({ lock: A1, fence: PAST, handed: "A" });
    await server.run(script, { owner: A1, token: PAST });
    expect((await server.state()).handed).toBeUndefined();
  });

  test("is confirmed when it is adopted", async () => {
    await server.set({ lock: A1, fence: PAST, handed: "A" });
    expect(await server.run(mutexAdopt, { from: A1, to: B, token: PAST })).toBe(1);
    expect(await server.state()).toEqual({ lock: B, fence: PAST });
  });
});

describe("a lease that ended without confirmation", () => {
  test("removes its client from the queue and grants the next client", async () => {
    await server.set({ fence: PAST, queue: [A9, B1], handed: "A" });
    expect(await server.run(mutexAcquire, { owner: B1, leaseMs: 40_000 })).toBeGreaterThan(PAST);
    expect(await server.state()).toMatchObject({ lock: B1 });
    expect(await server.state()).not.toHaveProperty("queue");
    expect(await server.messages()).toEqual(["A ~9"]);
  });

  test("does not affect other clients", async () => {
    await server.set({ fence: PAST, queue: [B1, A9], handed: "A" });
    await server.run(mutexAcquire, { owner: A1, enqueue: 1 });
    // The client that lost its places is alive, so its next request queues behind the others.
    expect(await server.state()).toMatchObject({ lock: B1, queue: [A1], handed: "B" });
  });

  test("is noticed and cleared even without waiters", async () => {
    await server.set({ fence: PAST, handed: "B" });
    expect(await server.run(mutexAcquire, { owner: A1 })).toBeGreaterThan(PAST);
    expect(await server.state()).not.toHaveProperty("handed");
  });

  test("removes at most 1 000 places from the queue", async () => {
    const queue = Array.from({ length: 1_200 }, (_, i) => `C/${i + 1}/30000/1/;3000`);
    await server.set({ fence: PAST, queue: [...queue, B1], handed: "C" });
    await server.run(mutexAcquire, { owner: B1, leaseMs: 40_000, enqueue: 1 });
    // The other 200 places belong to a crashed client too, so the hand-off skips them.
    expect(await server.state()).toMatchObject({ lock: B1 });
  });
});
