/**
 * Simulates two hosts with the same crontab. Each period has twenty starts, of which one may run. Hosts are killed at
 * random times, with everything that they run.
 */
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { sleep } from "../../holdfast/src/testing/delays.js";
import { type Ended, newFolder, type Running, start, textIn } from "../tests/support/command.js";

/** The number of periods; `HOLDFAST_CRON_PERIODS=30` runs more of them. */
const PERIODS = Number(process.env.HOLDFAST_CRON_PERIODS ?? 6);
const EACH = 10;
/** Long enough for twenty processes to start on a busy machine. */
const PERIOD_MS = Number(process.env.HOLDFAST_CRON_PERIOD_MS ?? 20_000);

/**
 * Less than the pause between two starts of the same crontab entry, because processes start earlier or later on a busy
 * machine.
 */
const ONCE_PER_MS = Math.round(PERIOD_MS * 0.8);

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => {
  await server.stop();
});

it(`the command runs at most once in each of ${PERIODS} periods with ${2 * EACH} starts on two hosts that are killed at random`, {
  timeout: 2 * PERIODS * PERIOD_MS + 60_000,
}, async () => {
  const folder = await newFolder();
  const log = join(folder, "runs");
  writeFileSync(log, "");
  const killed: string[] = [];
  const ends: Ended[] = [];
  for (let period = 0; period < PERIODS; period += 1) {
    const beganAtMs = performance.now();
    // Each command records the period in which it was started, and takes a moment.
    const script = `echo "${period} $HOLDFAST_TOKEN" >> ${log}; sleep 0.2`;
    const words = [
      "run",
      "nightly",
      "-n",
      "--skip-ok",
      "--once-per",
      `${ONCE_PER_MS}ms`,
      "--lease",
      "3s",
      "-c",
      script,
    ];
    const env = { HOLDFAST_REDIS: server.url };
    const hosts: Running[][] = ["a", "b"].map((host) =>
      Array.from({ length: EACH }, () => start([...words, "--client-name", host], env)),
    );
    // In every third period one host crashes, with everything that runs there, at some moment of the first half.
    const victim = period % 3 === 1 ? hosts[period % 2] : undefined;
    if (victim !== undefined) {
      await sleep(Math.random() * (PERIOD_MS / 3));
      for (const { child } of victim) child.kill("SIGKILL");
      killed.push(`${period}`);
    }
    const rest = await Promise.all(
      hosts.filter((host) => host !== victim).flatMap((host) => host.map(({ ended }) => ended)),
    );
    ends.push(...rest);
    appendFileSync(join(folder, "periods"), `${period}\n`);
    const leftMs = PERIOD_MS - (performance.now() - beganAtMs);
    // If the machine was too slow for the period, the later periods would not be meaningful.
    expect(leftMs).toBeGreaterThan(-PERIOD_MS * 0.05);
    await sleep(Math.max(0, leftMs));
  }
  const runs = (textIn(log) ?? "")
    .trim()
    .split("\n")
    .map((line) => line.split(" ").map(Number) as [number, number]);
  const perPeriod = Array.from({ length: PERIODS }, (_, period) => runs.filter(([of]) => of === period).length);
  expect(perPeriod.filter((count) => count > 1)).toEqual([]);
  // A period may have no run if a host was killed while it held the lock: the period stays used, or the lease has not
  // ended yet.
  const without = perPeriod.flatMap((count, period) => (count === 0 ? [period] : []));
  for (const period of without) expect(killed.map(Number)).toContain(period);
  expect(ends.map(({ code }) => code).filter((code) => code !== 0)).toEqual([]);
  const tokens = runs.map(([, token]) => token);
  expect(tokens.toSorted((a, b) => a - b)).toEqual(tokens);
});
