/** A token names one grant: whoever acts on an older one ends nobody's hold, even if it is the one right before. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";

test.each(["mutex", "election"] as const)(
  "a hold is not ended by the token of the grant before it: %s",
  async (kind) => {
    // On a server whose clock stands still each token is the last one and one more.
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
