/** Tests independent servers of which too many have just started. That is not an outage, so cron must not report it. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { type Place, placeOf } from "./place.js";

let servers: readonly RedisServer[];
let place: Place;
beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  place = placeOf({
    ports: servers.map(({ port }) => port),
    env: { HOLDFAST_REDLOCK: "1" },
    clients: servers.map(({ url }) => new Redis(url)),
    isQuorum: true,
    stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  });
});
afterAll(async () => {
  await place?.close();
});

it("run exits with 75 and says until when the servers grant nothing; --skip-ok is silent", async () => {
  // The servers grant nothing until the lease of the first request would have ended.
  const words = ["run", "job", "--lease", "1h"];
  const [refused, waited, skipped] = await Promise.all([
    place.say(...words, "-n", "--", "true"),
    // Longer than the servers need to reply on a busy machine. They grant nothing for an hour, so the wait ends in vain.
    place.say(...words, "-w", "10s", "--", "true"),
    place.say(...words, "-n", "--skip-ok", "--", "true"),
  ]);
  for (const { code, stderr } of [refused, waited]) {
    expect([code, stderr]).toEqual([
      75,
      expect.stringMatching(/^holdfast: job is not granted until .*Z \(in .*\): this Redis was restarted or took over/),
    ]);
  }
  expect(skipped).toMatchObject({ code: 0, stdout: "", stderr: "" });
  const { stderr } = await place.say(...words, "-n", "--json", "--", "true");
  const result = JSON.parse(stderr.trim().split("\n").at(-1) ?? "");
  expect(result).toMatchObject({ event: "result", outcome: "grace", code: 75 });
});
