import { LockError } from "holdfast";
import { leaseProgram } from "../lease-program.js";
import type { Kind } from "../scene.js";
import { stealProgram } from "../steals.js";

/** The capacity of the lock: a writer takes all of it, a reader 1. */
const ALL = 1_000;

/** The read-write lock; some callers upgrade or downgrade while they hold. */
export const readWriteLock: Kind = {
  name: "read-write-lock",
  run(scene) {
    const { lockName, session, judge, world } = scene;
    const lock = scene.member.holdfast.readWriteLock(lockName);
    if (session.way === "steal") return stealProgram(scene, ALL, (whose) => lock.write.forceRelease(whose));
    const side = lock[session.amount <= 2 ? "read" : "write"];
    return leaseProgram(scene, {
      acquire: (options) => side.acquire(options),
      tryAcquire: (options) => side.tryAcquire(options),
      run: (work, options) => side.run(work, options),
      holds: (lease) => [{ lockName, lease, weight: lease.mode === "write" ? ALL : 1, limit: ALL }],
      async meanwhile(lease, [view]) {
        if (session.other % 2 === 0 || view === undefined || lease.validForMs() <= 0) return;
        const calledMs = world.nowMs;
        const { recorder } = judge;
        const draft = recorder.called({
          process: scene.member.process,
          lockName,
          verb: lease.mode === "write" ? "downgrade" : "upgrade",
          owner: lease.owner,
          leaseId: view.operation.id,
        });
        try {
          if (lease.mode === "write") {
            view.weight = 1;
            await lease.downgrade();
            recorder.ended(draft, "ok");
          } else if ((await lease.tryUpgrade()) === null) recorder.ended(draft, "no", "busy");
          else {
            recorder.ended(draft, "ok");
            draft.token = lease.token;
            view.weight = ALL;
            view.token = lease.token;
            judge.newToken(lockName, lease.token, calledMs);
            judge.leases.checkExclusion(lockName);
          }
        } catch (error) {
          if (!(error instanceof LockError)) throw error;
          // An upgrade without a reply may have changed the token, which a renewal would not report.
          view.mayBeTaken = true;
        }
      },
      forceRelease: (whose) => side.forceRelease(whose),
      canMove: true,
    });
  },
};
