import { expect, test } from "vitest";
import { inboxEcho } from "../../src/generated/scripts.js";
import { INBOX, ScriptServer } from "./script-server.js";

const server = new ScriptServer();

test("an echo reaches the channel that it names, and leaves nothing behind", async () => {
  expect(await server.run(inboxEcho, { channel: `${INBOX}A`, number: 7, counted: 1 })).toBe(1);
  expect(await server.messages()).toEqual(["A =7"]);
  expect(await server.redis.dbsize()).toBe(0);
});

test("without a subscriber nothing is published, and the client learns that it is not counted", async () => {
  expect(await server.run(inboxEcho, { channel: `${INBOX}C`, number: 7, counted: 1 })).toBe(0);
  expect(await server.messages()).toEqual([]);
});

test("where subscribers cannot be counted, the echo is published all the same", async () => {
  expect(await server.run(inboxEcho, { channel: `${INBOX}C`, number: 7, counted: 0 })).toBe(1);
});
