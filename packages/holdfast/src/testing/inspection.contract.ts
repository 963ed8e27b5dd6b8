/** Tests `inspect` and unusual lock names. */
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { LONG_MS, until } from "./delays.js";
import type { MakeLock, Scene } from "./subject.js";

/** Names that have broken other libraries: braces, quotes, spaces, control characters, other alphabets. */
export const AWKWARD_NAMES: readonly string[] = [
  "}",
  "}a",
  "%}a",
  "%a",
  "{a}",
  "a}b{c",
  "{}",
  "{",
  "order 42",
  "a/b/c",
  "a:fence",
  "a:queue",
  'it\'s "quoted" \\ back',
  "line\nbreak\r\t",
  "nul\u0000nul",
  "\u2028\u0085\u007f",
  "]] return 1 --[[",
  "schlüssel/鍵/🔐",
  "x".repeat(512),
  "🔐".repeat(128),
];

/**
 * Registers the tests.
 *
 * @param hasQueue  whether the server knows the waiters, and when each hold began
 */
export function inspectionContract(scene: Scene, makeLock: MakeLock, hasQueue: boolean = true): void {
  if (hasQueue) waitersContract(scene);

  test("inspect of a free lock shows no holder and changes nothing", async () => {
    const before = await scene.server.keysWith(scene.name);
    const { waiterCount, waiters, token } = await scene.lock.inspect();
    expect({ holders: await scene.holders(), waiterCount, waiters }).toEqual({
      holders: [],
      waiterCount: 0,
      waiters: [],
    });
    // There are keys before the test only if `makeLock` took all permits but one.
    if (before.length === 0) expect(token).toBeUndefined();
    expect((await scene.server.keysWith(scene.name)).toSorted()).toEqual(before.toSorted());
  });

  for (const awkward of AWKWARD_NAMES) {
    test(`a lock can have the name ${JSON.stringify(awkward).slice(0, 60)} and is separate from others`, async () => {
      // A suffix makes the name unique. A prefix would change the first character, which matters for most of these
      // names.
      const isLong = Buffer.byteLength(awkward) > 400;
      const name = isLong || awkward.length < 3 ? awkward : awkward + scene.name.slice(-30);
      const lock = await makeLock(scene.holdfast, name);
      const rival = await makeLock(scene.rivalHoldfast, name);
      const neighbors = isLong ? ["x".repeat(511)] : [`${name}:fence`, `%${name}`, `{${name}}`];
      await lock.run(async (lease) => {
        expect(await rival.tryAcquire()).toBeNull();
        const waiting = rival.acquire({ waitMs: LONG_MS });
        for (const neighbor of neighbors) {
          const other = await (await makeLock(scene.rivalHoldfast, neighbor)).tryAcquire();
          expect(other).not.toBeNull();
          await other?.release();
        }
        expect((await scene.holders(rival))[0]?.owner).toBe(lease.owner);
        await lease.release();
        await (await waiting).release();
      });
    });
  }
}

/** Registers the tests of the waiters in `inspect`. */
function waitersContract(scene: Scene): void {
  test("inspect shows the process, label and times of the holder and the waiters", async () => {
    const before = Date.now();
    const lease = await scene.lock.acquire({ label: "böse/label\nfor people", leaseMs: LONG_MS });
    const waiting = scene.rival.acquire({ waitMs: LONG_MS, label: "next" });
    let [seen, holders] = [await scene.rival.inspect(), await scene.holders(scene.rival)];
    await until(async () => {
      [seen, holders] = [await scene.rival.inspect(), await scene.holders(scene.rival)];
      return seen.waiters[0]?.pid !== undefined && holders[0]?.pid !== undefined;
    }, "both records");
    const { waiters, waiterCount, token, name } = seen;
    expect(name).toBe(scene.name);
    expect(token).toBe(lease.token);
    expect(holders).toHaveLength(1);
    expect(holders[0]).toMatchObject({
      owner: lease.owner,
      label: "böse/label\nfor people",
      host: hostname(),
      pid: process.pid,
      clientName: "first",
      token: lease.token,
    });
    expect(Math.abs((holders[0]?.sinceAtMs ?? 0) - before)).toBeLessThan(LONG_MS);
    expect(holders[0]?.leaseLeftMs).toBeLessThanOrEqual(LONG_MS);
    expect(waiterCount).toBe(1);
    expect(waiters[0]).toMatchObject({ label: "next", host: hostname(), pid: process.pid, clientName: "second" });
    await lease.release();
    await (await waiting).release();
  });
}
