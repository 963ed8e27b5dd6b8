/**
 * After a restart or a failover, the server knows no script, and all concurrent calls get NOSCRIPT. Once, each of them loaded
 * its script itself, with a question to the server before and after. With thousands of calls, that took longer than their timeout.
 */
import { expect, test } from "vitest";
import { mutexAcquire, mutexRelease } from "../../src/generated/scripts.js";
import { IF_OTHER_RUN } from "../../src/server/lineage.js";
import { type ScriptClient, ScriptRunner } from "../../src/stores/script-runner.js";
import { ServerFailoverGuard } from "../../src/stores/server-failover-guard.js";
import { sleep } from "../../src/testing/delays.js";

const TIMEOUT_MS = 60_000;
const CALLS = 100;

/** A server that has forgotten its scripts, with a client that counts what it loads. */
class Forgetful implements ScriptClient {
  readonly known = new Set<string>();
  loads = 0;
  isCluster = false;
  /** Replaced to make a load fail or hang. */
  loading: () => Promise<void> = async () => {};

  async evalsha(sha1: string): Promise<unknown> {
    const isKnown = this.known.has(sha1);
    await sleep(1);
    if (!isKnown) throw new Error("NOSCRIPT No matching script");
    return 1;
  }

  async load(source: string): Promise<unknown> {
    this.loads += 1;
    await this.loading();
    const text = [mutexAcquire, mutexRelease].find((script) => script.source === source);
    this.known.add(text?.sha1 ?? "");
    // Replies to earlier commands arrive before this one.
    await sleep(5);
    return "";
  }

  isClosed(): boolean {
    return false;
  }

  losses(): number {
    return 0;
  }
}

/** A guard that may grant, and how often it asked. */
function guardOf(): { readonly guard: ServerFailoverGuard; readonly asked: () => number } {
  let asked = 0;
  const ask = async () => {
    asked += 1;
    return { outcome: "settled", longestMs: Infinity, run: "a" } as const;
  };
  const inspectSlot = async () => ({ outcome: "hidden" }) as const;
  const grace = { marker: "marker", ifOtherRun: IF_OTHER_RUN, ask, inspectSlot };
  const guard = new ServerFailoverGuard(grace, () => Promise.reject(new Error("not asked this way")));
  return { guard, asked: () => asked };
}

test("concurrent acquires load a script once, with three failover checks in total", async () => {
  const client = new Forgetful();
  const { guard, asked } = guardOf();
  const runner = new ScriptRunner(client, guard);
  const calls = Array.from({ length: CALLS }, () => runner.run(mutexAcquire, ["a", "b", "c"], [], TIMEOUT_MS));
  expect(await Promise.all(calls)).toEqual(calls.map(() => 1));
  expect(client.loads).toBe(1);
  // The first question comes before any script that grants is sent.
  expect(asked()).toBe(3);
});

test("concurrent releases load a script once", async () => {
  const client = new Forgetful();
  const runner = new ScriptRunner(client, guardOf().guard);
  await Promise.all(Array.from({ length: CALLS }, () => runner.run(mutexRelease, ["a", "b", "c"], [], TIMEOUT_MS)));
  expect(client.loads).toBe(1);
});

test("a call does not fail because the call that it waited for has failed", async () => {
  const client = new Forgetful();
  client.loading = async () => {
    await sleep(5);
    if (client.loads === 1) throw new Error("a proxy dropped this command");
  };
  const runner = new ScriptRunner(client, guardOf().guard);
  const run = () => runner.run(mutexRelease, ["a", "b", "c"], [], TIMEOUT_MS);
  const [first, second] = await Promise.allSettled([run(), run()]);
  expect(first).toMatchObject({ status: "rejected" });
  expect(second).toEqual({ status: "fulfilled", value: 1 });
  expect(client.loads).toBe(2);
});

test("a load that never ends delays other calls only until the call that began it has timed out", async () => {
  const client = new Forgetful();
  client.loading = () => (client.loads === 1 ? new Promise(() => {}) : Promise.resolve());
  const runner = new ScriptRunner(client, guardOf().guard);
  await expect(runner.run(mutexRelease, ["a", "b", "c"], [], 50)).rejects.toThrow("no reply within 50 ms");
  expect(await runner.run(mutexRelease, ["a", "b", "c"], [], TIMEOUT_MS)).toBe(1);
  expect(client.loads).toBe(2);
});

test("in a cluster, each call loads the script on the server of its keys", async () => {
  const client = new Forgetful();
  client.isCluster = true;
  const runner = new ScriptRunner(client);
  await Promise.all(["a", "b"].map((key) => runner.run(mutexRelease, [key, key, key], [], TIMEOUT_MS)));
  expect(client.loads).toBe(2);
});
