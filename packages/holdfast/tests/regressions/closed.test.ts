/**
 * After `close`, each method itself rejects with ClosedError. The error of the store or the client would depend on what
 * closed it.
 */
import { embedded } from "@holdfast/embedded";
import { beforeEach, describe, expect, test } from "vitest";
import { ClosedError, type Condition, createHoldfast, type Holdfast } from "../../src/index.js";
import { ScriptedStore } from "../unit/scripted-lock.js";

let holdfast: Holdfast;
beforeEach(() => {
  holdfast = createHoldfast({ store: embedded() });
});

const VERBS: Readonly<Record<string, (closed: Holdfast, condition: Condition) => Promise<unknown>>> = {
  "mutex.acquire": (closed) => closed.mutex("a").acquire(),
  "mutex.tryAcquire": (closed) => closed.mutex("a").tryAcquire(),
  "mutex.inspect": (closed) => closed.mutex("a").inspect(),
  "mutex.forceRelease": (closed) => closed.mutex("a").forceRelease({ token: 1 }),
  "reentrantMutex.inspect": (closed) => closed.reentrantMutex("a").inspect(),
  "multiLock.acquire": (closed) => closed.multiLock(["a", "b"]).acquire(),
  "multiLock.inspect": (closed) => closed.multiLock(["a", "b"]).inspect(),
  "semaphore.inspect": (closed) => closed.semaphore("a", { permits: 1 }).inspect(),
  "semaphore.capacity": (closed) => closed.semaphore("a", { permits: 1 }).capacity(),
  "semaphore.resize": (closed) => closed.semaphore("a", { permits: 1 }).resize(2),
  "readWriteLock.read.inspect": (closed) => closed.readWriteLock("a").read.inspect(),
  "readWriteLock.write.forceRelease": (closed) => closed.readWriteLock("a").write.forceRelease({ token: 1 }),
  "election.campaign": (closed) => closed.election("a").campaign("x"),
  "election.leader": (closed) => closed.election("a").leader(),
  "election.inspect": (closed) => closed.election("a").inspect(),
  "election.observe": (closed) => closed.election("a").observe().next(),
  "countDownLatch.await": (closed) => closed.countDownLatch("a").await(),
  "countDownLatch.count": (closed) => closed.countDownLatch("a").count(),
  "countDownLatch.inspect": (closed) => closed.countDownLatch("a").inspect(),
  "countDownLatch.trySetCount": (closed) => closed.countDownLatch("a").trySetCount(1),
  "countDownLatch.countDown": (closed) => closed.countDownLatch("a").countDown(),
  "countDownLatch.countDown with a caller id": (closed) => closed.countDownLatch("a").countDown(1, { callerId: "x" }),
  "barrier.arrive": (closed) => closed.barrier("a", { parties: 1 }).arrive(),
  "barrier.reset": (closed) => closed.barrier("a", { parties: 1 }).reset(),
  "barrier.inspect": (closed) => closed.barrier("a", { parties: 1 }).inspect(),
  "condition.inspect": (_closed, condition) => condition.inspect(),
};

test.each(Object.entries(VERBS))(
  "%s of a closed Holdfast rejects with ClosedError and sends nothing",
  async (_, verb) => {
    const store = new ScriptedStore();
    let sent = 0;
    store.run = () => {
      sent += 1;
      return Promise.reject(new Error("sent"));
    };
    const closed = createHoldfast({ store });
    const condition = closed.mutex("a").condition("c");
    await closed.close();
    await expect(verb(closed, condition)).rejects.toThrow(ClosedError);
    expect(sent).toBe(0);
  },
);

describe("a store shared by two Holdfasts", () => {
  test("is closed when both are closed, in any order and however often each is closed", async () => {
    const store = new ScriptedStore();
    const [first, second] = [createHoldfast({ store }), createHoldfast({ store })];
    await Promise.all([first.close(), first.close()]);
    await first.close();
    expect(store.wasClosed).toBe(false);
    await second.close();
    expect(store.wasClosed).toBe(true);
  });

  test("keeps working for the Holdfast that is still open", async () => {
    const store = embedded();
    const [first, second] = [createHoldfast({ store }), createHoldfast({ store })];
    const lease = await first.mutex("a").acquire();
    const waiting = second.mutex("a").acquire();
    await first.close();
    expect(lease.signal.aborted).toBe(true);
    expect((await waiting).token).toBeGreaterThan(lease.token);
    await second.close();
  });

  test("is not kept open by a Holdfast that failed to construct", async () => {
    const store = new ScriptedStore();
    expect(() => createHoldfast({ store, leaseMs: 1 })).toThrow(RangeError);
    await createHoldfast({ store }).close();
    expect(store.wasClosed).toBe(true);
  });
});

test("close() releases held locks before the store closes", async () => {
  const lease = await holdfast.mutex("a").acquire();
  await holdfast.close();
  expect(await lease.release()).toBe("released");
});
