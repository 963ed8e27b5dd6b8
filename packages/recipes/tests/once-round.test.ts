/** Requests of fifty callers of one key between the end of the run and the value: one round. */
import { expect, test } from "vitest";
import { startMonitor } from "../../../tests/support/monitor.js";
import { once } from "../src/index.js";
import { held, useQueueScene } from "./queue-scene.js";

const CALLERS = 50;
const scene = useQueueScene();

test("once publishes the end in one message, and each caller requests the result once", {
  timeout: 120_000,
}, async () => {
  const { holdfast, other, name, redis, server } = scene;
  const monitor = await startMonitor(server);
  const listener = redis.duplicate();
  try {
    let told = 0;
    listener.on("message", () => {
      told += 1;
    });
    await listener.subscribe(`hf:once:{/${name}}:ended`);

    const first = held<string>();
    const running = once(holdfast, name, first.work, { leaseMs: 600_000 });
    await first.began;
    await monitor.sent();
    const callers = Array.from({ length: CALLERS }, () => once(other, name, () => "second", { waitMs: 120_000 }));
    // The first caller of its process sends one request before it subscribes and one after. Now it cannot miss the end.
    for (let asked = 0; asked < 2; ) asked += asksOf(await monitor.sent());

    first.end("first");
    const results = await Promise.all([running, ...callers]);
    const asked = asksOf(await monitor.sent());
    expect(results.map(({ value, replayed }) => [value, replayed])).toEqual([
      ["first", false],
      ...callers.map(() => ["first", true]),
    ]);
    // One request per caller and one of the runner. On a busy machine, waiters also re-check every two seconds.
    expect(asked).toBeGreaterThan(CALLERS);
    expect(asked).toBeLessThan(CALLERS + 10);
    await redis.ping();
    await listener.ping();
    expect(told).toBe(1);
  } finally {
    listener.disconnect();
    monitor.stop();
  }

  /** Number of scripts that ran for this key. */
  function asksOf(sent: readonly (readonly string[])[]): number {
    return sent.filter(([command = "", ...words]) => /^(eval|fcall)/.test(command) && words.join(" ").includes(name))
      .length;
  }
});
