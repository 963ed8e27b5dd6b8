/** What fifty callers of one key cost between the end of the run and the value that all of them get: one round of messages. */
import { expect, test } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { once } from "../../src/recipes/index.js";
import { held, useQueueScene } from "./queue-scene.js";

const CALLERS = 50;
const scene = useQueueScene();

test("once: the end is told in one message, and each caller asks once for what has come of it", {
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
    // The first in the line of its process asks once before it listens, and once when it does; then it is sure to hear of the end.
    for (let asked = 0; asked < 2; ) asked += asksOf(await monitor.sent());

    first.end("first");
    const results = await Promise.all([running, ...callers]);
    const asked = asksOf(await monitor.sent());
    expect(results.map(({ value, replayed }) => [value, replayed])).toEqual([
      ["first", false],
      ...callers.map(() => ["first", true]),
    ]);
    // Each of them once, and the one that ran; whoever is kept waiting by a busy machine looks again every two seconds.
    expect(asked).toBeGreaterThan(CALLERS);
    expect(asked).toBeLessThan(CALLERS + 10);
    await redis.ping();
    await listener.ping();
    expect(told).toBe(1);
  } finally {
    listener.disconnect();
    monitor.stop();
  }

  /** How many scripts were run for this key. */
  function asksOf(sent: readonly (readonly string[])[]): number {
    return sent.filter(([command = "", ...words]) => /^(eval|fcall)/.test(command) && words.join(" ").includes(name))
      .length;
  }
});
