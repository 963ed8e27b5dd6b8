/** A key of the wrong type in place of a lock's key: the console stays up and names the key. */
import { expect, test } from "vitest";
import { redisScene, startConsole } from "./scene.js";

const redis = redisScene();

test("the lock is listed as broken beside the others, its page names the key, and Redis counts as up", async () => {
  const site = await startConsole({ holdfast: redis.holdfast });
  await redis.holdfast.mutex("held").acquire({ leaseMs: 600_000 });
  await redis.server.command("LPUSH", "hf:mutex:{wrong}", "junk");
  await redis.server.command("SET", "hf:client:AAAAAAAAAAAAAAAA", "junk");

  const { status, json } = await site.get("api/locks");
  expect(status).toBe(200);
  expect(json.rows.map(({ name, state }: { name: string; state: string }) => [name, state])).toEqual([
    ["held", "held"],
    ["wrong", "broken"],
  ]);
  const detail = await site.get("api/lock?kind=mutex&name=wrong");
  expect([detail.status, detail.json.row.state, detail.json.explain.code]).toEqual([200, "broken", "unreadable"]);
  expect(detail.json.explain.text).toContain("redis-cli UNLINK 'hf:mutex:{wrong}'");
  const clients = await site.get("api/clients");
  expect(clients.status).toBe(200);
  const mapped = await site.get("api/lock?kind=mutex&name=hf:mutex:%7Bwrong%7D&key=hf:mutex:%7Bwrong%7D");
  expect([mapped.status, mapped.json.row.state]).toEqual([200, "broken"]);
  expect((await site.get("api/redis")).json.store.state).toBe("up");
});
