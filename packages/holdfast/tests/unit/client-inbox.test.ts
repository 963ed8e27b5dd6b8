import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { ClientInbox } from "../../src/core/inbox.js";
import { settle } from "./manual-runtime.js";
import { Answer, lost, ScriptedStore } from "./scripted-lock.js";

let store: ScriptedStore;
let mailbox: ClientInbox;
let heard: unknown[][];
const recipient = {
  granted: (...facts: unknown[]) => void heard.push(["granted", ...facts]),
  recheck: () => void heard.push(["poked"]),
  revoked: () => void heard.push(["revoked"]),
};
beforeEach(async () => {
  store = new ScriptedStore();
  mailbox = new ClientInbox(store, "hf:in:me", () => {});
  heard = [];
  await mailbox.open(1_000);
  mailbox.register(7, recipient);
});

describe("a message", () => {
  test("reaches only the claim that it names", () => {
    store.push("+7 1763711220000000 1763711220000001");
    store.push("-7");
    store.push("+8 1 2");
    store.push("-8");
    expect(heard).toEqual([["granted", 1_763_711_220_000_000, 1_763_711_220_000_001, []], ["revoked"]]);
  });

  test.each([
    "",
    " ",
    "7",
    "+",
    "-",
    "+7",
    "+7 1",
    "+7 1 ",
    "+7 1 2 ",
    "+7  1 2",
    "+7 1 2\n",
    "\n+7 1 2",
    "+7 -1 2",
    "+7 1.5 2",
    "+7 1e9 2",
    "+0x7 1 2",
    "+7 99999999999999999 2",
    "- 7",
    "--7",
    "+7 1 2; +7 1 2",
    "{}",
    "null",
    "__proto__",
    "+constructor 1 2",
    "\u0000",
  ])("of an unknown form is ignored: %j", (message) => {
    store.push(message);
    expect(heard).toEqual([]);
  });

  test("never throws, whatever its content, and has an effect only in a known form", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary" }),
          fc.string({ unit: fc.constantFrom("+", "-", "7", " ", "1", "~", ",") }),
        ),
        (message) => {
          heard = [];
          store.push(message);
          if (heard.length > 0)
            expect(message).toMatch(/^(-0*7( \d+ \d+( [\d,]+)?)?|~0*7( \d+ \d+( [\d,]+)?)?|\+0*7 \d+ \d+( [\d,]+)?)$/);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("of ten megabytes is ignored", () => {
    store.push(`+7 ${"1".repeat(10_000_000)} 1`);
    store.push(`+${" ".repeat(10_000_000)}`);
    expect(heard).toEqual([]);
  });

  test("reaches the current claim of its number, and no claim once that is gone", () => {
    const successor = { granted: () => {}, recheck: () => {}, revoked: () => void heard.push(["successor"]) };
    mailbox.register(7, successor);
    mailbox.unregister(7, recipient);
    store.push("-7");
    mailbox.unregister(7, successor);
    store.push("-7");
    expect(heard).toEqual([["successor"]]);
    expect(mailbox.size).toBe(0);
  });
});

describe("opening", () => {
  test("subscribes once for all concurrent and later calls", async () => {
    store = new ScriptedStore();
    mailbox = new ClientInbox(store, "hf:in:me", () => {});
    const answer = new Answer<void>();
    store.subscribe = () => answer.promise;
    const opening = Promise.all([mailbox.open(1_000), mailbox.open(1_000)]);
    expect(mailbox.isOpen).toBe(false);
    answer.resolve();
    await opening;
    await mailbox.open(1_000);
    expect(mailbox.isOpen).toBe(true);
    expect(store.subscriptions).toBe(1);
  });

  test("can be retried after a failure, but not if the store is unsupported", async () => {
    store = new ScriptedStore();
    mailbox = new ClientInbox(store, "hf:in:me", () => {});
    store.subscribe = () => Promise.reject(lost());
    await expect(mailbox.open(1_000)).rejects.toThrow();
    expect([mailbox.isOpen, mailbox.unsupported]).toEqual([false, false]);
    store.subscribe = ScriptedStore.unsupported;
    await expect(mailbox.open(1_000)).rejects.toThrow();
    expect(mailbox.unsupported).toBe(true);
  });

  test("that completes after close receives no messages", async () => {
    store = new ScriptedStore();
    mailbox = new ClientInbox(store, "hf:in:me", () => {});
    mailbox.register(7, recipient);
    const answer = new Answer<void>();
    store.subscribe = () => answer.promise;
    const opening = mailbox.open(1_000);
    await mailbox.close();
    answer.resolve();
    await opening;
    await settle();
    store.push("-7");
    expect([mailbox.isOpen, heard]).toEqual([false, []]);
  });
});

test("a grant for an unknown claim is reported, a force-release is not", async () => {
  const strays: number[] = [];
  const other = new ClientInbox(store, "hf:in:me", (number) => strays.push(number));
  await other.open(1_000);
  store.push("+7 1763711220000000 1763711220000000");
  store.push("-8");
  store.push("~9");
  expect(strays).toEqual([7]);
});
