/** How long the reply to a periodic server check counts, on a manual clock. */
import { beforeEach, expect, test } from "vitest";
import { ProtocolError } from "../../src/core/errors.js";
import { Guard, type Refusal } from "../../src/core/guard.js";
import { ManualRuntime } from "./manual-runtime.js";
import { Answer, lost, watch } from "./scripted-lock.js";

const CONFLICT = {
  ...{ protocol: 1, version: "0.1.0", otherProtocol: 2, otherVersion: "2.0.0" },
  ...{ clientId: "two", host: "web-9", pid: 77, prefix: "hf", unusedInMs: 59_001 },
};
const refuses: Refusal = (lockName) => new ProtocolError(lockName, CONFLICT);

let runtime: ManualRuntime;
let guard: Guard;
let asked: number;
let answer: () => Promise<Refusal | undefined>;

beforeEach(async () => {
  runtime = new ManualRuntime();
  asked = 0;
  answer = async () => undefined;
  const ask = (): Promise<Refusal | undefined> => {
    asked += 1;
    return answer();
  };
  guard = new Guard([{ ask, countsForMs: 60_000 }], runtime);
  await guard.pass("l", async () => 1, 100);
});

test("while the last reply is still valid, a new check blocks no request", async () => {
  await runtime.advance(59_000);
  const later = new Answer<undefined>();
  answer = () => later.promise;
  guard.renew();
  expect([guard.isOpen, asked]).toEqual([true, 2]);
  later.resolve(undefined);
  await runtime.advance(0);
  expect(guard.isOpen).toBe(true);
});

test("after a longer silence, the next request waits for a new reply", async () => {
  await runtime.advance(60_000);
  const later = new Answer<Refusal>();
  answer = () => later.promise;
  guard.renew();
  expect(guard.isOpen).toBe(false);
  const passing = watch(guard.pass("l", async () => 7, 100));
  await runtime.advance(50);
  expect([passing.state, asked], "asked once").toEqual(["pending", 2]);
  later.resolve(refuses);
  await runtime.advance(0);
  expect(passing.error).toBeInstanceOf(ProtocolError);
});

test("a conflict found by a check rejects the next request", async () => {
  answer = async () => refuses;
  guard.renew();
  await runtime.advance(0);
  expect(guard.isOpen).toBe(false);
  await expect(guard.pass("l", async () => 7, 100)).rejects.toBeInstanceOf(ProtocolError);
  answer = async () => undefined;
  expect(await guard.pass("l", async () => 7, 100)).toBe(7);
  expect(guard.isOpen).toBe(true);
});

test("a failed check rejects nothing and is repeated with the next request", async () => {
  answer = () => Promise.reject(lost());
  guard.renew();
  await runtime.advance(0);
  expect(guard.isOpen).toBe(false);
  expect(await guard.pass("l", async () => 7, 100)).toBe(7);
  answer = async () => undefined;
  expect(await guard.pass("l", async () => 8, 100)).toBe(8);
  await runtime.advance(0);
  expect([guard.isOpen, asked]).toEqual([true, 4]);
});

test("an unanswered check blocks no request while the last reply is still valid, and only one after that", async () => {
  let failing = new Answer<undefined>();
  answer = () => failing.promise;
  guard.renew();
  failing.reject(lost());
  await runtime.advance(59_000);
  failing = new Answer<undefined>();
  expect(await guard.pass("l", async () => 7, 100), "the last answer counts").toBe(7);
  failing.reject(lost());
  await runtime.advance(0);
  guard.serverMayHaveChanged();
  failing = new Answer<undefined>();
  const held = watch(guard.pass("l", async () => 8, 100));
  await runtime.advance(50);
  expect(held.state).toBe("pending");
  failing.reject(lost());
  await runtime.advance(0);
  expect(held.value).toBe(8);
  failing = new Answer<undefined>();
  expect(await guard.pass("l", async () => 9, 100), "it did not answer before").toBe(9);
  failing.resolve(undefined);
  await runtime.advance(0);
  expect(guard.isOpen).toBe(true);
});

test("a server that was fixed is accepted even if another check fails", async () => {
  let refusal: Refusal | undefined = refuses;
  const failing = { ask: () => Promise.reject(lost()) };
  const both = new Guard([{ ask: async () => refusal }, failing], runtime);
  await expect(both.pass("l", async () => 7, 100)).rejects.toBeInstanceOf(ProtocolError);
  refusal = undefined;
  expect(await both.pass("l", async () => 7, 100)).toBe(7);
});

test("two unanswered checks delay a request no longer than one", async () => {
  const silent = { ask: () => new Promise<undefined>(() => {}) };
  const passing = watch(new Guard([silent, silent], runtime).pass("l", async () => 7, 300));
  await runtime.advance(299);
  expect(passing.state).toBe("pending");
  await runtime.advance(1);
  expect(passing.state).toBe("fulfilled");
});

test("the error message names both versions, the other client and the fix", () => {
  expect(new ProtocolError("order:42", CONFLICT).message).toBe(
    '"order:42" was refused and nothing is held: client two (pid 77 on web-9) uses protocol 2 (version 2.0.0) under the prefix "hf", ' +
      "and does not see locks of this process (protocol 1, version 0.1.0). Run one major version per " +
      "prefix; locks work again in 60 s unless a client uses protocol 2.",
  );
});
