/**
 * Tests the command on a host whose clock is five seconds off. Times of holders, pauses and past events are by the
 * server's clock, and the doctor reports that the two clocks differ.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createHoldfast, type Holdfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { type Ended, holdfast, inVain, newFolder } from "./support/command.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** Shifts the wall clock of a process before any other code reads the time. The monotonic clock is unchanged. */
const MOVED = `const offMs = Number(process.env.TEST_CLOCK_OFF_MS);
const Right = Date;
globalThis.Date = class Date extends Right {
  constructor(...words) {
    super(...(words.length === 0 ? [Right.now() + offMs] : words));
  }
  static now() {
    return Right.now() + offMs;
  }
};
`;

let server: RedisServer;
let redis: Redis;
let beside: Holdfast;
let lease: Lease;
let moved: string;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  beside = createHoldfast({ redis, clientName: "tests" });
  lease = await beside.mutex("deploy").acquire({ label: "release", leaseMs: 600_000 });
  await beside.pause("nightly", { by: "ana@ops-1", label: "maintenance" });
  moved = join(await newFolder(), "moved-clock.mjs");
  await writeFile(moved, MOVED);
});
afterAll(async () => {
  await beside?.close();
  redis?.disconnect();
  await server?.stop();
});

/** The server's clock, in ms since 1970. */
async function nowMs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Converts the text of `formatMs` back to ms, rounded down to seconds. */
function msOf(text: string): number {
  const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
  return [...text.matchAll(/(\d+)(ms|h|m|s)/g)].reduce(
    (sum, [, n, unit = ""]) => sum + Number(n) * (units[unit] ?? 0),
    0,
  );
}

describe.each([5_000, -5_000])("on a host whose clock is %i ms off", (offMs) => {
  const say = (...words: readonly string[]): Promise<Ended> =>
    holdfast(words, {
      HOLDFAST_REDIS: server.url,
      NODE_OPTIONS: `--import=${moved}`,
      TEST_CLOCK_OFF_MS: String(offMs),
    });

  /**
   * Checks that the printed age lies between the ages before and after the call. It may be up to a second lower,
   * because it is rounded down.
   */
  async function expectAge(sinceAtMs: number, tell: () => Promise<string | undefined>): Promise<void> {
    const atLeastMs = (await nowMs()) - sinceAtMs;
    const told = await tell();
    const atMostMs = (await nowMs()) - sinceAtMs;
    if (told === undefined) throw new Error("no age was told");
    expect(msOf(told), told).toBeGreaterThan(atLeastMs - 1_000);
    expect(msOf(told), told).toBeLessThanOrEqual(atMostMs);
  }

  it("doctor warns of the clock difference, and exits with 1 if --strict is given", async () => {
    const { code, stdout } = await say("doctor", "--only", "clock-skew,clock-runs", "--json", "--strict");
    expect(code).toBe(1);
    const { checks } = JSON.parse(stdout);
    const side = offMs > 0 ? "behind" : "ahead of";
    expect(checks).toMatchObject([
      { id: "clock-skew", status: "finding", severity: "warning" },
      { id: "clock-runs", status: "ok" },
    ]);
    expect(checks[0].measured).toMatch(new RegExp(`^[45]\\.\\d s ${side} this machine's clock`));
    expect((await say("doctor", "--only", "clock-skew")).code).toBe(0);
  });

  it("ls, show and a refused run print ages of holds and pauses by the server's clock", async () => {
    const heldAtMs = Math.floor(lease.token / 1_000);
    const { pause } = await beside.mutex("nightly").inspect();
    const pausedAtMs = pause?.sinceAtMs ?? 0;
    const columns = ["-o", "since", "--no-headings"];
    await expectAge(heldAtMs, async () => (await say("ls", "deploy", ...columns)).stdout);
    await expectAge(pausedAtMs, async () => (await say("ls", "nightly", ...columns)).stdout);
    const since = ({ stdout, stderr }: Ended): string | undefined => / for (\d[\dhms]*)/.exec(stdout + stderr)?.[1];
    await expectAge(heldAtMs, async () => since(await say("show", "deploy")));
    await expectAge(heldAtMs, async () => since(await say("run", "deploy", "-n", "--", "true")));
    const wait = (): Promise<Ended> => say("run", "deploy", "-w", "10ms", "--", "true");
    await expectAge(heldAtMs, async () => since(await inVain(wait, (ended) => since(ended) !== undefined)));
    await expectAge(pausedAtMs, async () => since(await say("run", "nightly", "-n", "--", "true")));
    const { locks } = JSON.parse((await say("ls", "deploy", "--json")).stdout);
    expect(locks[0].holders[0].sinceAtMs).toBe(heldAtMs);
  });

  it("a pause lasts as long as requested, and the history has the server's times", async () => {
    const name = `pause ${offMs}`;
    const beforeMs = await nowMs();
    const { untilAtMs, sinceAtMs } = JSON.parse(
      (await say("pause", name, "-m", "why", "--for", "10m", "--json")).stdout,
    );
    const afterMs = await nowMs();
    expect(sinceAtMs).toBeGreaterThanOrEqual(beforeMs);
    expect(sinceAtMs).toBeLessThanOrEqual(afterMs);
    expect(untilAtMs).toBeGreaterThanOrEqual(beforeMs + 600_000);
    expect(untilAtMs).toBeLessThanOrEqual(afterMs + 600_000);
    const { history } = JSON.parse((await say("history", name, "--json")).stdout);
    expect(history).toMatchObject([{ outcome: "paused", untilAtMs }]);
    expect(history[0].atMs).toBeGreaterThanOrEqual(beforeMs);
    expect(history[0].atMs).toBeLessThanOrEqual(afterMs);
  });

  it("--once-per refuses a second run in its period, here and on a host with a correct clock", async () => {
    const words = ["run", `hourly ${offMs}`, "-w", "60s", "--once-per", "1h", "--", "true"];
    expect((await say(...words)).code).toBe(0);
    expect((await holdfast(words, { HOLDFAST_REDIS: server.url })).code).toBe(75);
    expect((await say(...words)).code).toBe(75);
  });
});
