import type { Lease, Reply, Script, Store } from "holdfast";
import { describe, expect, test } from "vitest";

import type { Held } from "../src/faults/subject.js";
import { hold } from "../src/faults/subjects/holdfast-held.js";
import { Trails } from "../src/faults/subjects/trails.js";

const EXTEND = { name: "mutex/extend", args: ["owner", "token", "leaseMs"], replies: [] } as unknown as Script;

/** An observed store that confirms every extension. */
function watched(): { readonly trails: Trails; extend(owner: string): Promise<Reply> } {
  const trails = new Trails();
  const store = { run: async () => 1, onReconnect: () => () => {} } as unknown as Store;
  const door = trails.watch(store);
  return { trails, extend: (owner) => door.run(EXTEND, [], [owner, 1, 600], 500) };
}

/** So short that the lease soon ends by the clock too. */
const SHORT_MS = 20;
const LONG_MS = 60_000;

interface Fake {
  validMs: number;
  readonly lease: Lease;
}

/** A lease with the validity `fake.validMs` that calls `release` when it is released. */
function leaseOf(owner: string, release: (fake: Fake) => Promise<void>, validMs: number = LONG_MS): Fake {
  const fake: Fake = {
    validMs,
    lease: {
      owner,
      token: 1,
      name: owner,
      signal: new AbortController().signal,
      validForMs: () => fake.validMs,
      async release() {
        await release(fake);
        return "released" as const;
      },
    } as unknown as Lease,
  };
  return fake;
}

function held(lease: Lease, trails: Trails, kind: "mutex" | "multi-lock" = "mutex"): Held {
  const seen = hold(lease, { kind, lockName: "a", trails, turn: 0, isShared: false });
  seen.onRenewal?.(() => {});
  return seen;
}

describe("the reply that confirms a release", () => {
  test("is that of the extension that releases a lease that ends during its release", async () => {
    const { trails, extend } = watched();
    const fake = leaseOf("client/1/600/1", async (own) => {
      own.validMs = 0;
      await extend("client/1/600/1");
    });
    const seen = held(fake.lease, trails);
    expect(await seen.release()).toBeUndefined();
    expect(seen.answered?.("release")).toEqual(expect.any(Number));
  });

  test("is that of a member that the multi-lock released late, after it lost another member", async () => {
    const { trails, extend } = watched();
    const members = ["client/1/600/1", "client/2/600/1"].map((owner) => leaseOf(owner, async () => {}, SHORT_MS));
    const whole = leaseOf("client/2/600/1", async () => {});
    Object.assign(whole.lease, { leases: members.map(({ lease }) => lease) });
    const seen = held(whole.lease, trails, "multi-lock");
    for (const member of members) member.validMs = 0;
    await new Promise((resolve) => setTimeout(resolve, 2 * SHORT_MS));
    await extend("client/2/600/1");
    await seen.release();
    expect(seen.parts?.map((part) => part.answered?.("release"))).toEqual([null, expect.any(Number)]);
  });

  test("is never that of a renewal that was answered while the lease was valid", async () => {
    const { trails, extend } = watched();
    const fake = leaseOf("client/1/600/1", async () => {});
    const seen = held(fake.lease, trails);
    await extend("client/1/600/1");
    fake.validMs = 0;
    await seen.release();
    expect(seen.answered?.("release")).toBeNull();
  });
});
