/** Callers that share an abort signal share one listener. They must not affect each other. */
import { expect, test } from "vitest";
import { onAbort } from "../../src/core/options.js";

test("a callback removed by another callback during the abort is not called", () => {
  const controller = new AbortController();
  const called: string[] = [];
  let endSecond: () => void = () => {};
  onAbort(controller.signal, () => {
    called.push("first");
    endSecond();
  });
  endSecond = onAbort(controller.signal, () => called.push("second"));
  onAbort(controller.signal, () => called.push("third"));
  controller.abort();
  expect(called).toEqual(["first", "third"]);
});

test("a callback that throws does not stop the others, and its error is reported as uncaught", async () => {
  const controller = new AbortController();
  const uncaught: unknown[] = [];
  const listeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => uncaught.push(error));
  try {
    const error = new Error("a callback's own");
    let isCalled = false;
    onAbort(controller.signal, () => {
      throw error;
    });
    onAbort(controller.signal, () => {
      isCalled = true;
    });
    controller.abort();
    expect(isCalled).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(uncaught).toEqual([error]);
  } finally {
    process.removeAllListeners("uncaughtException");
    for (const listener of listeners) process.on("uncaughtException", listener);
  }
});

test("removing a callback twice leaves the others in place", () => {
  const controller = new AbortController();
  const called: string[] = [];
  const endFirst = onAbort(controller.signal, () => called.push("first"));
  onAbort(controller.signal, () => called.push("second"));
  endFirst();
  endFirst();
  controller.abort();
  expect(called).toEqual(["second"]);
});
