/** A client that resends requests in flight receives the reply to the second copy. */
import { expect, test } from "vitest";
import { StoreError } from "../../src/core/errors.js";
import { mutexForceRelease } from "../../src/generated/scripts.js";
import { ioredis, nodeRedis, useFaultScene } from "../faults/scene.js";

const scene = useFaultScene();

test("a force-release whose first reply was lost does not report that nothing was released", async () => {
  const holder = await scene.client(ioredis);
  const proxy = await scene.proxy();
  for (const library of [ioredis, nodeRedis]) {
    const other = (await scene.client(library, {}, proxy.port)).mutex(scene.name);
    expect(await other.forceRelease({ owner: "nobody" })).toBe(false);
    const { owner } = await holder.mutex(scene.name).acquire();

    const cut = proxy.cutBeforeReply((words) => words.includes(mutexForceRelease.sha1));
    const failure = await other.forceRelease({ owner }).catch((error: unknown) => error);
    await cut;
    expect(failure).toBeInstanceOf(StoreError);
    expect(failure).toMatchObject({ mayHaveRun: true });
    expect(await scene.holder()).toBe(null);
  }
});
