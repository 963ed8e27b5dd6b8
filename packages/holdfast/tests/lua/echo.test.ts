import { expect, test } from "vitest";
import { inboxEcho } from "../../src/generated/scripts.js";
import { INBOX, ScriptServer } from "./script-server.js";

const server = new ScriptServer();

test("an echo reaches the channel it names and leaves no keys behind", async () => {
  expect(await server.run(inboxEcho, { channel: `${INBOX}A`, number: 7, counted: 1 })).toBe(1);
  expect(await server.messages()).toEqual(["A =7"]);
  expect(await server.redis.dbsize()).toBe(0);
});

test("an echo without a subscriber is not published, and the reply says so", async () => {
  expect(await server.run(inboxEcho, { channel: `${INBOX}C`, number: 7, counted: 1 })).toBe(0);
  expect(await server.messages()).toEqual([]);
});

test("an echo is published even if subscribers cannot be counted", async () => {
  expect(await server.run(inboxEcho, { channel: `${INBOX}C`, number: 7, counted: 0 })).toBe(1);
});
