/** An unused lock keeps neither the process nor the server busy. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/index.js";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

interface Lifetime {
  readonly code: number | null;
  /** Lines that the process printed. */
  readonly steps: Record<string, unknown>[];
  readonly complaints: string;
}

/**
 * When a process whose server is down must have exited. Its client alone takes 4 s on an idle machine. Shorter than the
 * lease, so that the end of the lease cannot be what ends the process.
 */
const DOWN_MS = 3 * LONG_MS;
/** Length of a lease that outlives a process. */
const LEASE_MS = 4 * LONG_MS;

/** Runs programs/lifetime.mjs until it exits by itself; kills it after `exitMs`. */
function live(
  library: string,
  scenario: string,
  options: { waitMs?: number; leaseMs?: number; port?: number } = {},
  exitMs = LONG_MS,
): Promise<Lifetime> {
  const { name, server } = scene;
  const program = fileURLToPath(new URL("./programs/lifetime.mjs", import.meta.url));
  const input = JSON.stringify({ library, scenario, port: server.port, name, ...options });
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, input], { timeout: exitMs, killSignal: "SIGKILL" });
    let output = "";
    let complaints = "";
    child.stdout?.on("data", (text: string) => {
      output += text;
    });
    child.stderr?.on("data", (text: string) => {
      complaints += text;
    });
    child.on("close", (code) => {
      const steps = output.split("\n").filter((line) => line !== "");
      resolve({ code, complaints, steps: steps.map((line) => JSON.parse(line) as Record<string, unknown>) });
    });
  });
}

describe.each(["ioredis", "node-redis"])("a process on %s", (library) => {
  test("exits by itself after a release, without close()", async () => {
    const { code, steps, complaints } = await live(library, "released");
    expect({ code, steps, complaints }).toEqual({ code: 0, steps: [{ left: "by itself" }], complaints: "" });
  });

  test("exits by itself while it holds a lease that it renews", async () => {
    const { code, steps, complaints } = await live(library, "held", { leaseMs: LEASE_MS });
    expect({ code, complaints }).toEqual({ code: 0, complaints: "" });
    expect(steps).toEqual([{ owner: expect.any(String) }, { left: "by itself" }]);
    expect(await scene.holder(), "the server ends the lease").toBe(steps[0]?.owner);
  });

  test("exits by itself if its client is disconnected while the server is down, without close()", async () => {
    const down = await startRedis();
    onTestFinished(() => down.stop());
    const { code, steps, complaints } = await live(
      library,
      "down",
      { waitMs: 1_000, leaseMs: LEASE_MS, port: down.port },
      DOWN_MS,
    );
    expect({ code, complaints }).toEqual({ code: 0, complaints: "" });
    expect(steps.at(-1)).toEqual({ left: "by itself" });
  });

  test("stays alive while it waits, and then exits", async () => {
    const holder = await scene.client(ioredis);
    const lease = await holder.mutex(scene.name).acquire({ leaseMs: 4 * LONG_MS });
    const waitMs = 3 * BRIEF_LEASE_MS;
    let { code, steps, complaints } = await live(library, "waiting", { waitMs });
    // As in `endOf`: if the machine stalls at the end of the wait, its last request gets no reply in time.
    for (let times = 1; times < 4 && steps[0]?.error === "StoreError"; times += 1) {
      ({ code, steps, complaints } = await live(library, "waiting", { waitMs }));
    }
    expect({ code, complaints }).toEqual({ code: 0, complaints: "" });
    expect(steps).toEqual([{ error: "AcquireTimeoutError", afterMs: expect.any(Number) }, { left: "by itself" }]);
    expect(steps[0]?.afterMs).toBeGreaterThanOrEqual(waitMs - 1);
    await lease.release();
  });

  test("has no more timers and connections after close() than before", async () => {
    const { code, steps, complaints } = await live(library, "closed", { waitMs: LONG_MS, leaseMs: LONG_MS });
    expect({ code, complaints }).toEqual({ code: 0, complaints: "" });
    const [closed] = steps;
    expect(closed?.after).toEqual(closed?.before);
    expect(closed?.waits).toEqual(Array.from({ length: 20 }, () => "ClosedError"));
    expect(closed?.isAborted).toBe(true);
    expect(await scene.holder()).toBeNull();
  });
});

test.each([ioredis, nodeRedis, glide])(
  "after close() on $name, the server has no subscriber and only keys that expire",
  async (library) => {
    const { name, server, keys } = scene;
    const [first, second] = [await scene.client(library), await scene.client(library)];
    const lease = await first.mutex(name).acquire({ leaseMs: LONG_MS });
    const abort = new AbortController();
    const waits = [
      second.mutex(name).acquire({ waitMs: LONG_MS, fairness: "strict" }),
      second.mutex(name).acquire({ waitMs: SOON_MS, fairness: "strict" }),
      second.mutex(name).acquire({ waitMs: LONG_MS, signal: abort.signal, fairness: "strict" }),
      first.mutex(name).acquire({ waitMs: LONG_MS }),
    ];
    const settled = Promise.allSettled(waits);
    await scene.queued(4);
    abort.abort(new Error("enough"));
    await scene.queued(2);
    expect(await subscribers()).toEqual([1, 1]);
    const closedAtMs = performance.now();
    await Promise.all([first.close(), second.close()]);
    expect(performance.now() - closedAtMs).toBeLessThan(SOON_MS);
    expect(lease.signal.reason).toMatchObject({ reason: "closed" });
    expect((await settled).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected", "rejected"]);

    await until(async () => (await subscribers()).length === 0, "no subscriber");
    expect(await server.command("EXISTS", keys.lock, keys.queue)).toBe(0);
    const left = (await server.command("KEYS", "*")) as string[];
    expect(
      left.map((key) => key.replace(/[^:]+$/, (last) => (["fence", "protocol"].includes(last) ? last : "<id>"))).sort(),
    ).toEqual([keys.fence, "hf:client:<id>", "hf:client:<id>", "hf:protocol", "hf:<id>"].sort());
    for (const key of left) expect(Number(await server.command("PTTL", key)), key).toBeGreaterThan(0);
  },
);

test.each([ioredis, nodeRedis, glide])(
  "a wait without a time limit on $name fails when its client is closed",
  async (library) => {
    const { name, server } = scene;
    const holder = await scene.client(ioredis);
    const lease = await holder.mutex(name).acquire({ leaseMs: LONG_MS });
    const { options, disconnect } = await library.connect(server.port);
    const holdfast = createHoldfast(options);
    const waiting = holdfast.mutex(name).acquire({ waitMs: Infinity, leaseMs: LONG_MS });
    const refused = expect(waiting).rejects.toMatchObject({ code: "ERR_LOCK_STORE", transient: false });
    await scene.queued(1);
    await disconnect();
    await refused;
    await holdfast.close();
    // The native part of GLIDE closes its socket late, and until then the server counts a subscriber.
    await lease.release();
    const next = await holder.mutex(name).acquire({ waitMs: LONG_MS + SOON_MS });
    expect(await next.release()).toBe("released");
  },
);

/** Number of subscribers of each channel that has any. */
async function subscribers(): Promise<number[]> {
  const channels = (await scene.server.command("PUBSUB", "CHANNELS", "*")) as string[];
  if (channels.length === 0) return [];
  const counts = (await scene.server.command("PUBSUB", "NUMSUB", ...channels)) as (string | number)[];
  return counts.filter((_, i) => i % 2 === 1).map(Number);
}
