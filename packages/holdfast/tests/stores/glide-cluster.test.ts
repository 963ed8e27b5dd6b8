/** Whether a GLIDE cluster client subscribes to sharded channels depends only on the server's replies. */
import { expect, test, vi } from "vitest";
import { StoreError } from "../../src/core/errors.js";
import type { Inbox, Store } from "../../src/core/store.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS } from "../../src/testing/delays.js";

const UNKNOWN =
  "An error was signalled by the server: - ResponseError: unknown command `SPUBLISH`, with args beginning with: ";
const KNOWN = "An error was signalled by the server: - ResponseError: wrong number of arguments for 'spublish' command";
const NO_ANSWER = "timed out";

/** A client whose server replies to `SPUBLISH` with these errors in order, and then always with the last one. */
function scene(...answers: string[]) {
  const subscriptions: string[] = [];
  const client = {
    invokeScript: vi.fn(),
    customCommand: vi.fn(async ([command = ""]: string[]) => {
      if (command !== "SPUBLISH") return [{ key: "channel", value: 1 }];
      throw new Error(answers.length > 1 ? answers.shift() : answers[0]);
    }),
    subscribe: async (channels: string[]) => void subscriptions.push(`plain ${channels.join()}`),
    ssubscribe: async (channels: string[]) => void subscriptions.push(`sharded ${channels.join()}`),
    unsubscribe: async () => {},
    sunsubscribe: async () => {},
    getPubSubMessage: () => new Promise<never>(() => {}),
    getServerVersion: vi.fn(),
    close: () => {},
  };
  const store = storeFor(client, { subscriber: async () => client });
  const open = (channel: string): Promise<Inbox> =>
    (store.shardInbox as NonNullable<Store["shardInbox"]>)(channel, () => {}, LONG_MS);
  return { store, open, subscriptions, client };
}

test("a server that did not reply is asked again, and is not treated as one with sharded channels", async () => {
  const { store, open, subscriptions } = scene(NO_ANSWER, UNKNOWN);
  await expect(open("hf:in:{a}:me")).rejects.toSatisfy((error) => error instanceof StoreError && error.transient);
  expect((await open("hf:in:{a}:me")).isCounted).toBe(false);
  expect(subscriptions).toEqual(["plain hf:in:{a}:me"]);
  await store.close();
});

test("after a server is upgraded, new inboxes use sharded channels", async () => {
  const { store, open, subscriptions } = scene(UNKNOWN, KNOWN);
  await open("hf:in:{a}:me");
  await open("hf:in:{b}:me");
  expect(subscriptions).toEqual(["plain hf:in:{a}:me", "sharded hf:in:{b}:me"]);
  await store.close();
});

test("a server is asked once whether it has sharded channels", async () => {
  const { store, open, client } = scene(KNOWN);
  for (const channel of ["hf:in:{a}:me", "hf:in:{b}:me"]) expect((await open(channel)).isCounted).not.toBe(false);
  expect(client.customCommand.mock.calls.filter(([[command]]) => command === "SPUBLISH")).toHaveLength(1);
  await store.close();
});
