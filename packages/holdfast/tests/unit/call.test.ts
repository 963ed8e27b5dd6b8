import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, onTestFinished, test } from "vitest";
import { call } from "../../src/core/call.js";
import { StoreError } from "../../src/core/errors.js";
import type { Reply, Script } from "../../src/core/store.js";
import { mutexAcquire, mutexInspect, mutexRelease } from "../../src/generated/scripts.js";
import { ScriptedStore } from "./scripted-lock.js";

/** A store that returns `reply`, or rejects if it is an error, and records its requests. */
class Answering extends ScriptedStore {
  readonly asked: unknown[] = [];
  readonly #reply: unknown;

  constructor(reply: unknown) {
    super();
    this.#reply = reply;
  }

  override run(...request: unknown[]): Promise<never> {
    this.asked.push(...request);
    return this.#reply instanceof Error ? Promise.reject(this.#reply) : Promise.resolve(this.#reply as never);
  }
}

/** The result of `script` if the server returns `reply`. */
function answer(script: Script, reply: Reply | Error): Promise<unknown> {
  const store = new Answering(reply);
  return call({ store, name: "a" }, script, {}, {}, 1_000);
}

describe("a call", () => {
  test("puts keys and arguments in the order of the script header", async () => {
    const store = new Answering(1);
    await call(
      { store, name: "a" },
      mutexRelease,
      { pause: "p", handed: "h", queue: "q", fence: "f", lock: "l" },
      { freed: 0, inbox: "i", token: 5, owner: "o" },
      77,
    );
    expect(store.asked).toEqual([mutexRelease, ["l", "f", "q", "h", "p"], ["o", 5, "i", 0], 77]);
  });

  test("adds the lock name to a store error and keeps its details", async () => {
    const cause = new Error("gone");
    const failing = answer(
      mutexRelease,
      new StoreError("mutex/release", { mayHaveRun: false, transient: true, cause }),
    );
    await expect(failing).rejects.toMatchObject({ lockName: "a", mayHaveRun: false, transient: true, cause });
  });

  test.each([
    ["a function", () => ({ host: "here", port: 1 }), { host: "here", port: 1 }],
    ["a function that throws", () => expect.unreachable(), undefined],
    ["not a function", "here:1", undefined],
  ])("succeeds and publishes the server, if known, of a store whose `server` is %s", async (_, server, told) => {
    const heard: unknown[] = [];
    const hear = (event: unknown): void => void heard.push(event);
    subscribe("holdfast:command", hear);
    onTestFinished(() => void unsubscribe("holdfast:command", hear));
    const store = Object.assign(new Answering(1), { server }) as never;
    expect(await call({ store, name: "a" }, mutexRelease, {} as never, {} as never, 1_000)).toEqual({
      outcome: "released",
    });
    expect(heard).toMatchObject([{ script: "mutex/release", error: undefined, server: told }]);
  });

  test("passes on an error that is not a StoreError", async () => {
    const bug = new TypeError("mine");
    await expect(answer(mutexRelease, bug)).rejects.toBe(bug);
  });
});

describe("a reply", () => {
  test.each<[Script, Reply, object]>([
    [mutexRelease, 1, { outcome: "released" }],
    [mutexRelease, 2, { outcome: "unclaimed" }],
    [mutexRelease, [3], { outcome: "claimed" }],
    [mutexAcquire, 1_763_711_220_000_000, { outcome: "granted", token: 1_763_711_220_000_000 }],
    [mutexAcquire, [0, 30, 5], { outcome: "waiting", restMs: 30, nowUs: 5, pauses: [] }],
    [mutexAcquire, ["1", "-1", "5"], { outcome: "refused", restMs: -1, nowUs: 5, pauses: [] }],
    [
      mutexInspect,
      [1, 5, 7, 1, -1, "me", "you"],
      { outcome: "held", restMs: 5, token: 7, waiters: 1, ahead: -1, owners: ["me", "you"] },
    ],
    [mutexInspect, [0, -2, 0, 0, -1], { outcome: "free", restMs: -2, token: 0, waiters: 0, ahead: -1, owners: [] }],
  ])("%# is returned with the names of the script header", async (script, reply, outcome) => {
    expect(await answer(script, reply)).toEqual(outcome);
  });

  test.each<[Script, unknown]>([
    [mutexRelease, 6],
    [mutexRelease, 0],
    [mutexRelease, [1, 2]],
    [mutexRelease, []],
    [mutexRelease, [null]],
    [mutexRelease, [""]],
    [mutexRelease, Number.NaN],
    [mutexRelease, null],
    [mutexRelease, "OK"],
    [mutexRelease, "\n"],
    [mutexAcquire, 1],
    [mutexAcquire, [7]],
    [mutexAcquire, [0, 30]],
    [mutexAcquire, [0, "soon", 5]],
    [mutexAcquire, [null, 30, 5]],
    [mutexAcquire, [0, null, 5]],
    [mutexInspect, [1, 5, 7]],
    [mutexInspect, [1, 5, null, 0, -1]],
  ])("%# that the script header does not list is a StoreError with an unknown outcome", async (script, reply) => {
    const error = await answer(script, reply as Reply).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ mayHaveRun: true, transient: false });
    expect(String(error)).toContain(script.name);
  });
});
