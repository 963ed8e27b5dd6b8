/**
 * Random trees of work that acquire one reentrant mutex repeatedly, in parallel and in sequence, while another client
 * wants it too. Some branches outlive their parents. The model is a count for each token.
 */
import { embedded, Keyspace } from "@holdfast/embedded";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createHoldfast, type ReentrantLease, type ReentrantMutex } from "../../src/index.js";
import { RUNS } from "./runs.js";

/** One piece of work: how it acquires the mutex, how many turns it lasts, and its children. */
interface Work {
  readonly by: "run" | "acquire" | "tryAcquire";
  readonly turns: number;
  readonly children: readonly Work[];
  /** Whether the children run in parallel, and whether the parent waits for them. */
  readonly childrenRun: "in turn" | "side by side" | "left alone";
}

/** Trees with at most `depth` levels below the root. */
function work(depth: number): fc.Arbitrary<Work> {
  return fc.record({
    by: fc.constantFrom("run", "acquire", "tryAcquire"),
    turns: fc.nat(2),
    children: depth === 0 ? fc.constant([]) : fc.array(work(depth - 1), { maxLength: 3 }),
    childrenRun: fc.constantFrom("in turn", "side by side", "left alone"),
  });
}

class Stage {
  readonly #leases = new Map<number, number>();
  readonly strays: Promise<void>[] = [];

  /** Adds or removes a lease under a token. Two tokens must never be held at the same time. */
  count(token: number, change: 1 | -1): void {
    this.#leases.set(token, (this.#leases.get(token) ?? 0) + change);
    const held = [...this.#leases].filter(([, count]) => count > 0);
    expect(held.length).toBeLessThanOrEqual(1);
  }

  async perform(
    mutex: ReentrantMutex,
    { by, turns, children, childrenRun }: Work,
    parent?: ReentrantLease,
  ): Promise<void> {
    const inside = async (lease: ReentrantLease): Promise<void> => {
      this.count(lease.token, 1);
      lease.assertHeld();
      for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
      const start = (child: Work): Promise<void> => this.perform(mutex, child, lease);
      if (childrenRun === "in turn") for (const child of children) await start(child);
      else if (childrenRun === "side by side") await Promise.all(children.map(start));
      else this.strays.push(...children.map(start));
      // Counted before the release because afterward another client may be granted.
      this.count(lease.token, -1);
    };
    // Work outside `run` whose parent waits for it must pass `within`. Otherwise it would deadlock on its own parent.
    const isAlone = parent === undefined || mutex.holdCount > 0 || parent.validForMs() === 0;
    const within = isAlone ? {} : { within: parent };
    if (by === "run") return mutex.run(inside, { ...within, waitMs: Infinity });
    const lease =
      by === "acquire" ? await mutex.acquire({ ...within, waitMs: Infinity }) : await mutex.tryAcquire(within);
    if (lease === null) return;
    await inside(lease);
    await lease.release();
  }
}

test("only one hold exists at a time and ends with its last lease, however work re-enters the mutex", async () => {
  const keyspace = new Keyspace();
  const mine = createHoldfast({ store: embedded({ keyspace }) });
  const theirs = createHoldfast({ store: embedded({ keyspace }) });
  let programs = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(work(3), { minLength: 1, maxLength: 3 }), async (works) => {
      programs += 1;
      const stage = new Stage();
      const mutex = mine.reentrantMutex(`m${programs}`);
      const rival = theirs.mutex(mutex.name);
      const rivalling = Promise.all(
        works.map(() =>
          rival.run(
            async ({ token }) => {
              stage.count(token, 1);
              await new Promise(setImmediate);
              stage.count(token, -1);
            },
            { waitMs: Infinity },
          ),
        ),
      );
      await Promise.all(works.map((each) => stage.perform(mutex, each)));
      while (stage.strays.length > 0) await Promise.all(stage.strays.splice(0));
      await rivalling;
      expect((await mutex.inspect()).holders).toEqual([]);
      expect(mutex.holdCount).toBe(0);
    }),
    { numRuns: RUNS },
  );
  await Promise.all([mine.close(), theirs.close()]);
});
