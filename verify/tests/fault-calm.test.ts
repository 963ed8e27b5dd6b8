import { describe, expect, test } from "vitest";

import { type Calm, lookInCalm } from "../src/faults/in-calm.js";
import type { OpenStage } from "../src/faults/parts.js";
import type { Client, Stage } from "../src/faults/stage.js";
import type { HistoryRecord, Outcome } from "../src/history/records.js";
import { operations } from "./histories.js";
import { cellNamed } from "./run-of-a-cell.js";

type Take = Parameters<Client["take"]>[0];

/** A library that works, except for the deviation that a test names. Times are on the test's clock. */
interface World {
  nowMs: number;
  /** The time until it is granted; undefined if it is not. */
  grants(take: Take): number | undefined;
  /** Whether a refusal takes the whole wait, not only the time of a request without a reply. */
  readonly isAnswered: boolean;
  awaits(lockName: string, nth: number): { readonly outcome: Outcome; readonly afterMs: number };
  tokenOf(take: Take): number;
  readonly asked: Take[];
}

const AT_ONCE = 1;
/** Lets simultaneous calls of others run first. */
const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function look(
  cell: string,
  broken: Partial<Pick<World, "grants" | "awaits" | "isAnswered" | "tokenOf">>,
  more: readonly HistoryRecord[] = [],
): Promise<Calm & Pick<World, "asked">> {
  const world: World = {
    nowMs: 0,
    grants: () => AT_ONCE,
    isAnswered: true,
    tokenOf: () => 1,
    awaits: () => ({ outcome: "ok", afterMs: AT_ONCE }),
    asked: [],
    ...broken,
  };
  let awaited = 0;
  const client = (name: string): Client =>
    ({
      name,
      pid: 1,
      lastRefusal: "nobody answered",
      async take(take: Take) {
        world.asked.push(take);
        const afterMs = world.grants(take);
        await later();
        world.nowMs += afterMs ?? (world.isAnswered ? take.waitMs : 1) ?? 0;
        return afterMs === undefined ? undefined : { leaseId: 1, token: world.tokenOf(take), validUntilMs: null };
      },
      release: async () => {},
      barrier: async () => "ok",
      async condition(_: string, act: string) {
        if (act === "signal") return { outcome: "ok", moved: 1 };
        const { outcome, afterMs } = world.awaits("new", 1);
        await later();
        world.nowMs += afterMs;
        return { outcome, moved: 1 };
      },
      async latch(lockName: string, verb: string) {
        if (verb !== "await") return "ok";
        awaited += 1;
        const { outcome, afterMs } = world.awaits(lockName, awaited);
        await later();
        world.nowMs += afterMs;
        return outcome;
      },
    }) as unknown as Client;
  const records = [...operations(["A acquire 0-2 ok", "A release 10-12 ok"], "mutex", "used"), ...more];
  const stage = {
    cell: cellNamed(cell),
    clients: [client("c1"), client("c2")],
    leaseMs: 600,
    // A queue in which all waiters seem to be immediately.
    topology: { servers: [{ command: async () => 100 }] },
    nowMs: () => world.nowMs,
    async sleep(ms: number) {
      world.nowMs += ms;
    },
    newName: () => "new",
    keyPrefix: (lockName: string) => lockName,
  } as unknown as Stage;
  const found = await lookInCalm({ stage, records: () => records } as unknown as OpenStage);
  return { ...found, asked: world.asked };
}

const found = ({ breaches }: Calm): string[] => breaches.map(({ property, lockName }) => `${property} ${lockName}`);

describe("after the last fault", () => {
  test.each(["J10/1n/w", "J03/1n/s", "J01/1n/m", "J17/1e/k", "J06/1n/l", "J03/1n/b", "J10/1n/c"])(
    "a lock that works is decided, and nothing is found, in %s",
    async (cell) => {
      const calm = await look(cell, {});
      expect(calm.breaches).toEqual([]);
      const isSeveral = "sw".includes(cell.at(-1) ?? "");
      expect(calm.checked).toEqual({ L2: 1, L3: isSeveral || cell.endsWith("c") ? 2 : 1, X3: isSeveral ? 1 : 0 });
    },
  );

  test("a name that is no longer granted to anyone is found, for each kind", async () => {
    for (const cell of ["J10/1n/w", "J03/1n/s", "J01/1n/m"]) {
      const calm = await look(cell, { grants: ({ lockName }) => (lockName === "used" ? undefined : AT_ONCE) });
      expect(found(calm), cell).toEqual(["L2 used"]);
    }
    const latch = await look("J06/1n/l", {
      awaits: (lockName) => (lockName === "used" ? { outcome: "no", afterMs: 5_000 } : { outcome: "ok", afterMs: 1 }),
    });
    expect(found(latch)).toEqual(["L2 used"]);
  });

  test("a permit that is left behind is found, and so is a reader", async () => {
    const isLeft = ({ lockName, permits, mode }: Take): boolean =>
      lockName === "used" && (permits === 3 || mode === "write");
    for (const cell of ["J10/1n/w", "J03/1n/s"]) {
      const calm = await look(cell, { grants: (take) => (isLeft(take) ? undefined : AT_ONCE) });
      expect(found(calm), cell).toEqual(["L2 used"]);
    }
  });

  test("a single missing answer does not count as a dead lock", async () => {
    let refusals = 0;
    const grants = ({ lockName }: Take): number | undefined =>
      lockName !== "used" || refusals++ > 0 ? AT_ONCE : undefined;
    expect(found(await look("J01/1n/m", { grants, isAnswered: false }))).toEqual([]);
  });

  test("a waiter that is not notified is found, even if it notices by itself", async () => {
    for (const cell of ["J10/1n/w", "J03/1n/s", "J01/1n/m"]) {
      let waiters = 0;
      const calm = await look(cell, {
        grants: ({ waitMs }) => (waitMs === 10_000 && ++waiters === 2 ? 5_003 : AT_ONCE),
      });
      expect(found(calm), cell).toContain("L3 new");
    }
    let awaits = 0;
    const latch = await look("J06/1n/l", {
      awaits: (lockName) => ({ outcome: "ok", afterMs: lockName === "new" && ++awaits === 2 ? 5_003 : 1 }),
    });
    expect(found(latch)).toEqual(["L3 new"]);
  });

  test("a lost signal is found, and so is one without a message to its waiter", async () => {
    const signalled = async (outcome: Outcome, afterMs: number): Promise<string[]> =>
      found(await look("J10/1n/c", { awaits: () => ({ outcome, afterMs }) }));
    expect(await signalled("no", 15_000)).toEqual(["L3 new"]);
    expect(await signalled("ok", 5_003)).toEqual(["L3 new"]);
    expect(await signalled("ok", 3)).toEqual([]);
  });

  test("a waiter that is overtaken although there is room for it is found", async () => {
    for (const cell of ["J10/1n/w", "J03/1n/s"]) {
      // The last waiter wants the smallest part, and the one before it wants the whole lock.
      const calm = await look(cell, { tokenOf: ({ mode, permits }) => (permits === 1 && mode === "read" ? 2 : 3) });
      expect(found(calm), cell).toEqual(["X3 new"]);
    }
  });

  test("after a fault of the server's clock, its remaining keys are not judged", async () => {
    const scan = (owners: readonly string[]): HistoryRecord => ({
      type: "key-scan",
      atMs: 20,
      lockName: "used",
      owners,
      isReachable: true,
    });
    const names = async (cell: string, owners: readonly string[]): Promise<Set<string>> =>
      new Set((await look(cell, {}, [scan(owners)])).asked.map(({ lockName }) => lockName));
    expect(await names("J28/1n/m", ["client/1/600/1"])).toEqual(new Set(["new"]));
    expect(await names("J28/1n/m", [])).toEqual(new Set(["used", "new"]));
    expect(await names("J01/1n/m", ["client/1/600/1"])).toEqual(new Set(["used", "new"]));
  });
});
