import { expect, test } from "vitest";
import { clientRecordAnnounce, clientRecordRead } from "../../src/generated/scripts.js";
import { KEYS, ScriptServer } from "./script-server.js";

const server = new ScriptServer();
const ODD = 'h"o\nst\u0000🔐';

test("a record is read as it was written, and lives as long as it was told to", async () => {
  const about = {
    host: ODD,
    pid: 42,
    name: "",
    version: "1.2.3",
    ageMs: 90_000,
    keepMs: 50_000,
    timeouts: '{"library":"x"}',
  };
  for (const _ of [1, 2]) expect(await server.run(clientRecordAnnounce, about)).toBe(1);
  expect(await server.run(clientRecordRead)).toEqual([1, ODD, "42", "", "1.2.3"]);
  const [seen, since] = await server.redis.hmget(KEYS.client as string, "seen", "since");
  expect(Number(seen) - Number(since)).toBe(90_000_000);
  expect(await server.redis.hget(KEYS.client as string, "timeouts")).toBe('{"library":"x"}');
  const left = await server.redis.pttl(KEYS.client as string);
  expect(left).toBeGreaterThan(40_000);
  expect(left).toBeLessThanOrEqual(50_000);
});

test("a client without a record is unknown, and reading makes none", async () => {
  expect(await server.run(clientRecordRead)).toEqual([0]);
  expect(await server.redis.dbsize()).toBe(0);
});
