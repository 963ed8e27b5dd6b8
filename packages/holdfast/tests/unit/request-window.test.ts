/** Requests that wait until enough earlier requests are answered. */
import { beforeEach, expect, test } from "vitest";
import { RequestWindow } from "../../src/core/call.js";
import { StoreError } from "../../src/core/errors.js";
import { ManualRuntime } from "./manual-runtime.js";
import { Answer, lost, watch } from "./scripted-lock.js";

let runtime: ManualRuntime;
beforeEach(() => {
  runtime = new ManualRuntime();
});

/** Sends one request per lock name. Tests provide the replies. */
function requests(window: RequestWindow, ...locks: string[]) {
  const sent: string[] = [];
  const made = locks.map((lock, i) => {
    const answer = new Answer<string>();
    const end = watch(
      window.send(lock, () => {
        sent.push(`${lock}${i}`);
        return answer.promise;
      }),
    );
    return { answer, end };
  });
  return { sent, made };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("requests are sent in order, each after a reply to an earlier one", async () => {
  const { sent, made } = requests(new RequestWindow(2, runtime), "a", "a", "b", "a");
  expect(sent).toEqual(["a0", "a1"]);
  made[1]?.answer.resolve("yes");
  await settle();
  expect(sent).toEqual(["a0", "a1", "b2"]);
  made[0]?.answer.resolve("yes");
  made[2]?.answer.resolve("yes");
  await settle();
  expect(sent).toEqual(["a0", "a1", "b2", "a3"]);
  made[3]?.answer.resolve("last");
  await settle();
  expect(made.map(({ end }) => end.value)).toEqual(["yes", "yes", "yes", "last"]);
});

test("an unanswered request fails later ones for the same lock, but not for other locks", async () => {
  const { sent, made } = requests(new RequestWindow(1, runtime), "a", "a", "b", "a");
  const failure = lost();
  made[0]?.answer.reject(failure);
  await settle();
  expect(made.map(({ end }) => end.error)).toEqual([failure, failure, undefined, failure]);
  expect(sent).toEqual(["a0", "b2"]);
  made[2]?.answer.resolve("yes");
  await settle();
  expect(made[2]?.end.value).toBe("yes");
});

test("a refusal counts as a reply, and later requests are sent", async () => {
  const { sent, made } = requests(new RequestWindow(1, runtime), "a", "a");
  const refusal = new StoreError("a", { mayHaveRun: false, transient: false, cause: new Error("WRONGTYPE") });
  made[0]?.answer.reject(refusal);
  await settle();
  expect(sent).toEqual(["a0", "a1"]);
  made[1]?.answer.resolve("yes");
  await settle();
  expect(made.map(({ end }) => end.state)).toEqual(["rejected", "fulfilled"]);
});

test("a silent server does not block requests for other locks: more are sent after 25 ms", async () => {
  const { sent, made } = requests(new RequestWindow(2, runtime), "a", "b", "c", "d", "e", "f", "g");
  await runtime.advance(24);
  expect(sent).toEqual(["a0", "b1"]);
  await runtime.advance(1);
  expect(sent).toEqual(["a0", "b1", "c2", "d3"]);
  // A reply to one of the first two frees no slot because its slot has been given away.
  made[0]?.answer.resolve("late");
  await runtime.advance(0);
  expect(sent).toHaveLength(4);
  made[2]?.answer.resolve("yes");
  await runtime.advance(24);
  expect(sent).toEqual(["a0", "b1", "c2", "d3", "e4"]);
  await runtime.advance(1);
  expect(sent).toHaveLength(7);
  expect(runtime.running()).toBe(0);
});

test("requests for the same lock wait even if the server is silent", async () => {
  const { sent, made } = requests(new RequestWindow(1, runtime), "a", "a", "b", "a");
  await runtime.advance(1_000);
  expect(sent).toEqual(["a0", "b2"]);
  made[0]?.answer.reject(lost());
  await runtime.advance(0);
  expect(made.map(({ end }) => end.state)).toEqual(["rejected", "rejected", "pending", "rejected"]);
  await runtime.advance(25);
  expect(runtime.running()).toBe(0);
});
