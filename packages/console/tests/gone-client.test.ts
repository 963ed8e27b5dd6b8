/** Releasing all locks of a gone client, among more locks than the console follows. */
import { expect, it } from "vitest";
import { until } from "../../holdfast/src/testing/delays.js";
import { addLocks } from "./many-locks.js";
import { redisScene, startConsole } from "./scene.js";

const redis = redisScene();
const LOCKS = 20_000;
const LEFT_BEHIND = 30;

it("the locks of a gone client are all released, wherever they are in the list", { timeout: 120_000 }, async () => {
  const dead = redis.another({ clientName: "gone" });
  const leases = await Promise.all(
    Array.from({ length: LEFT_BEHIND }, (_, i) =>
      dead.mutex(`left-behind-${i}`).acquire({ leaseMs: 600_000, renew: false }),
    ),
  );
  await addLocks(redis, LOCKS, "other:");
  const [clientId = ""] = leases[0]?.owner.split("/") ?? [];
  // Backdates the client's record, as if it had been silent for a minute.
  const record = `hf:client:${clientId}`;
  await until(async () => (await redis.server.command("HEXISTS", record, "seen")) === 1, "it has a record");
  await redis.server.command("HSET", record, "seen", Date.now() - 90_000);
  const page = await (await startConsole({ holdfast: redis.holdfast, allow: ["release"] })).signIn("ana");
  const { json } = await page.post("api/actions/release-client", { clientId, reason: "host is gone" });
  expect(json.message).toContain(`Released ${LEFT_BEHIND} `);
  for (const i of leases.keys()) expect((await redis.holdfast.mutex(`left-behind-${i}`).inspect()).holders).toEqual([]);
});
