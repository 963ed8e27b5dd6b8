/**
 * A token identifies one grant. A force-release with an older token must end no hold, even with the token right before.
 */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";

test.each(["mutex", "election"] as const)(
  "the token of the previous grant does not force-release the current hold: %s",
  async (kind) => {
    // If the server's clock does not advance, each token is the previous one plus one.
    const keyspace = new Keyspace({ clock: { nowUs: () => 1_700_000_000_000_000 } });
    const holdfast = createHoldfast({ store: embedded({ keyspace }) });
    const lock = holdfast[kind]("a");
    const before = await lock.tryAcquire();
    await before?.release();
    const held = await lock.tryAcquire();
    expect((held?.token ?? 0) - (before?.token ?? 0)).toBe(1);
    expect(await lock.forceRelease({ token: before?.token ?? 0 })).toBe(false);
    expect((await lock.inspect()).holders[0]?.owner).toBe(held?.owner);
    expect(await lock.forceRelease({ token: held?.token ?? 0 })).toBe(true);
    await holdfast.close();
  },
);
