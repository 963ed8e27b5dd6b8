import { beforeEach, expect, test } from "vitest";
import { SlotInboxes } from "../../src/core/inbox.js";
import { ManualRuntime } from "./manual-runtime.js";

let runtime: ManualRuntime;
let inboxes: SlotInboxes;
let opened: string[];
let closed: string[];

beforeEach(() => {
  runtime = new ManualRuntime();
  opened = [];
  closed = [];
  const open = async (channel: string): Promise<{ close(): Promise<void> }> => {
    opened.push(channel);
    return { close: async () => void closed.push(channel) };
  };
  inboxes = new SlotInboxes(open, "me", runtime);
});

test("an inbox is usable once confirmed, and concurrent opens share one subscription", async () => {
  expect(inboxes.use("hf:in:{a}:")).toBeUndefined();
  const both = [inboxes.open("hf:in:{a}:", 1_000), inboxes.open("hf:in:{a}:", 1_000)];
  expect(inboxes.use("hf:in:{a}:")).toBeUndefined();
  await Promise.all(both);
  expect(inboxes.use("hf:in:{a}:")).toBeDefined();
  expect(inboxes.use("hf:in:{b}:")).toBeUndefined();
  expect(opened).toEqual(["hf:in:{a}:me"]);
});

test("an inbox stays open while it is used, and closes after it has been idle", async () => {
  await inboxes.open("hf:in:{a}:", 1_000);
  await inboxes.open("hf:in:{b}:", 1_000);
  for (let seconds = 0; seconds < 120; seconds += 5) {
    await runtime.advance(5_000);
    expect(inboxes.use("hf:in:{a}:")).toBeDefined();
  }
  expect(closed).toEqual(["hf:in:{b}:me"]);
  await runtime.advance(60_000);
  expect(closed).toEqual(["hf:in:{b}:me", "hf:in:{a}:me"]);
  expect(inboxes.use("hf:in:{a}:")).toBeUndefined();
  expect(runtime.running()).toBe(0);
});

test("the inbox timer does not keep the process alive", async () => {
  await inboxes.open("hf:in:{a}:", 1_000);
  expect(runtime.running(true)).toBe(0);
  expect(runtime.running(false)).toBe(1);
});

test("an inbox confirmed after close is closed immediately", async () => {
  const opening = inboxes.open("hf:in:{a}:", 1_000);
  await inboxes.close();
  await opening;
  expect(closed).toEqual(["hf:in:{a}:me"]);
  expect(inboxes.use("hf:in:{a}:")).toBeUndefined();
});

test("a failed open rejects its caller, and the next open retries", async () => {
  let tries = 0;
  const failing = new SlotInboxes(
    async () => {
      tries += 1;
      if (tries === 1) throw new Error("not now");
      return { close: async () => {} };
    },
    "me",
    runtime,
  );
  await expect(failing.open("hf:in:{a}:", 1_000)).rejects.toThrow("not now");
  await failing.open("hf:in:{a}:", 1_000);
  expect(failing.use("hf:in:{a}:")).toBeDefined();
});
