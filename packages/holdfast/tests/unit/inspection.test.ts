/** `inspect` resolves client ids in the server's reply to names, as far as they are known. */
import { beforeEach, expect, test } from "vitest";
import { ClosedError } from "../../src/core/errors.js";
import type { ClientRecord } from "../../src/core/session.js";
import { lost, NOBODY, ScriptedLock } from "./scripted-lock.js";

const UNKNOWN = { host: undefined, pid: undefined, clientName: undefined };
const PROCESS = { host: "web-1", pid: 42, clientName: "web" };
const RECORD: ClientRecord = { ...PROCESS, protocol: 1 };

let world: ScriptedLock;
/** The client ids whose records were requested, with the timeout of each request. */
let asked: [clientId: string, timeoutMs: number][];
let find: (clientId: string) => Promise<ClientRecord | undefined>;

beforeEach(() => {
  world = new ScriptedLock();
  asked = [];
  find = async (clientId) => (clientId === "known" ? RECORD : undefined);
  world.session.records.read = (clientId, timeoutMs) => {
    asked.push([clientId, timeoutMs]);
    return find(clientId);
  };
});

test("a free lock has no holder and no waiters", async () => {
  expect(await world.lock.inspect()).toEqual({
    kind: "mutex",
    name: "scripted",
    holders: [],
    token: undefined,
    waiterCount: 0,
    waiters: [],
    pause: undefined,
  });
  expect(asked).toEqual([]);
});

test("inspect shows the process and label of each holder and waiter, and looks up each client once", async () => {
  const [owner, other] = ["known/1/1000/1/night%20run", "gone/1/1000/1"];
  const waiters = ["known/2/1000/1/a", "gone/2/1000/1", "known/3/1000/1"];
  const pause = { by: "ops", label: "why", sinceAtMs: 1, untilAtMs: undefined, owner: "pause" };
  const leaseLeftMs = 900;
  world.answers.inspect = async () => ({
    holders: [
      { owner, token: 1_763_711_220_123_999, leaseLeftMs },
      { owner: other, token: 5_000, leaseLeftMs, isUntimed: true },
    ],
    token: 1_763_711_220_123_999,
    waiterCount: 7,
    waiters,
    ahead: undefined,
    pause,
  });
  expect(await world.lock.inspect()).toEqual({
    kind: "mutex",
    name: "scripted",
    holders: [
      {
        ...PROCESS,
        owner,
        label: "night run",
        token: 1_763_711_220_123_999,
        sinceAtMs: 1_763_711_220_123,
        leaseLeftMs,
      },
      { ...UNKNOWN, owner: other, label: undefined, token: 5_000, sinceAtMs: undefined, leaseLeftMs },
    ],
    token: 1_763_711_220_123_999,
    waiterCount: 7,
    waiters: [
      { ...PROCESS, owner: waiters[0], label: "a" },
      { ...UNKNOWN, owner: waiters[1], label: undefined },
      { ...PROCESS, owner: waiters[2], label: undefined },
    ],
    pause,
  });
  expect(asked.map(([clientId]) => clientId).toSorted()).toEqual(["gone", "known"]);
});

test("a foreign holder has no token of its own and is not looked up", async () => {
  const holder = { owner: "5f1c-other", token: 1_763_711_220_000_000, leaseLeftMs: 50 };
  world.answers.inspect = async () => ({ ...NOBODY, holders: [holder], token: holder.token });
  const { holders, token } = await world.lock.inspect();
  expect(token).toBe(holder.token);
  expect(holders).toEqual([
    { ...UNKNOWN, owner: "5f1c-other", label: undefined, token: undefined, sinceAtMs: undefined, leaseLeftMs: 50 },
  ]);
  expect(asked).toEqual([]);
});

test("inspect does not show a pause that has ended", async () => {
  const untilAtMs = world.runtime.wallMs();
  const pause = { by: "ops", label: "why", sinceAtMs: 1, untilAtMs, owner: "pause" };
  world.answers.inspect = async () => ({ ...NOBODY, pause });
  expect((await world.lock.inspect()).pause).toBeUndefined();
});

test("inspect succeeds even if client records cannot be read", async () => {
  find = () => Promise.reject(lost());
  world.answers.inspect = async () => ({ ...NOBODY, waiterCount: 1, waiters: ["known/1/1000/1/a"] });
  expect((await world.lock.inspect()).waiters).toEqual([{ ...UNKNOWN, owner: "known/1/1000/1/a", label: "a" }]);
  expect(asked).toEqual([["known", 200]]);
  world = new ScriptedLock({ commandTimeoutMs: 100 });
  world.answers.inspect = async () => ({ ...NOBODY, waiterCount: 1, waiters: ["known/1/1000/1/a"] });
  world.session.records.read = async (...question) => void asked.push(question);
  await world.lock.inspect();
  expect(asked.at(-1)).toEqual(["known", 100]);
});

test("inspect passes on the server's error, and sends nothing after close", async () => {
  world.answers.inspect = () => Promise.reject(lost());
  await expect(world.lock.inspect()).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
  await world.session.close();
  await expect(world.lock.inspect()).rejects.toThrow(ClosedError);
  expect(world.sentOf("inspect")).toHaveLength(1);
});
