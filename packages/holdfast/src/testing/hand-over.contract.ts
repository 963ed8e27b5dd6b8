/** Tests that a lease can be moved to another process, or that a kind without this feature refuses the export. */
import { expect, test } from "vitest";
import { type ExportedLease, LeaseLostError, UnsupportedError } from "../index.js";
import type { Scene } from "./subject.js";

/** Registers the tests for kinds whose leases can be exported. */
export function handOverContract(scene: Scene): void {
  test("an exported lease continues in another client with the same token and ends here", async () => {
    const lease = await scene.lock.acquire({ label: "import 7" });
    const wire = JSON.stringify(lease.export());
    expect(lease.validForMs()).toBe(0);
    expect(await lease.release()).toBe("released");
    expect(await scene.lock.tryAcquire()).toBeNull();
    const adopted = await scene.rivalHoldfast.adopt(JSON.parse(wire) as ExportedLease);
    expect(adopted.token).toBe(lease.token);
    expect(adopted.validForMs()).toBeGreaterThan(0);
    expect((await scene.holders())[0]?.label).toBe("import 7");
    expect(await adopted.release()).toBe("released");
    const error = await scene.rivalHoldfast.adopt(JSON.parse(wire) as ExportedLease).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LeaseLostError);
    const why = "released or not renewed in time, but the lock was not granted to another holder since.";
    expect(error).toMatchObject({ reason: "expired", message: expect.stringContaining(why) });
  });

  test("an exported lease can be adopted only once", async () => {
    const exported = (await scene.lock.acquire()).export();
    const adopted = await scene.rivalHoldfast.adopt(exported);
    for (const holdfast of [scene.holdfast, scene.rivalHoldfast]) {
      const error = await holdfast.adopt(exported).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LeaseLostError);
      const message = expect.stringContaining("it was already adopted and is still held.");
      expect(error).toMatchObject({ reason: "handed-over", message, token: exported.token });
    }
    adopted.assertHeld();
    expect(await adopted.release()).toBe("released");
  });

  test("an exported lease cannot be adopted after the lock was granted to another holder", async () => {
    const exported = (await scene.lock.acquire()).export();
    await (await scene.rivalHoldfast.adopt(exported)).release();
    const next = await scene.rival.acquire();
    const error = await scene.holdfast.adopt(exported).catch((reason: unknown) => reason);
    const message = expect.stringContaining("so the lock may have been granted to another holder since.");
    expect(error).toMatchObject({ name: "LeaseLostError", reason: "expired", message });
    expect(await next.release()).toBe("released");
  });
}

/** Registers the test for kinds whose leases cannot be exported. */
export function noHandOverContract(scene: Scene): void {
  test("an export is refused, and the holder keeps the lock", async () => {
    const lease = await scene.lock.acquire();
    expect(() => lease.export()).toThrow(UnsupportedError);
    lease.assertHeld();
    expect(await lease.release()).toBe("released");
  });
}
