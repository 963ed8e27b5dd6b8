import { LockError } from "holdfast";
import { checkHeard, release } from "../holding.js";
import { leaseProgram } from "../lease-program.js";
import type { Kind } from "../scene.js";
import { exclusive } from "./mutex.js";

/** The reentrant mutex; every second caller enters again while it holds, and leaves again. */
export const reentrantMutex: Kind = {
  name: "reentrant-mutex",
  run(scene) {
    const { lockName, session } = scene;
    const lock = scene.member.holdfast.reentrantMutex(lockName);
    return leaseProgram(scene, {
      ...exclusive(lock, lockName),
      async meanwhile(lease, [view]) {
        if (session.amount % 2 === 0 || lease.validForMs() <= 0 || view === undefined) return;
        try {
          const inner = await lock.acquire({ within: lease, waitMs: 0 });
          if (inner.validForMs() > 0 && inner.token !== lease.token) {
            scene.judge.violated("F3", `${lockName}: entering again changed the token`);
          }
          await scene.member.process.sleep(session.holdMs / 4);
          const isOver = lease.validForMs() <= 0;
          if (isOver) view.givenBackMs = scene.world.nowMs;
          const releasedMs = scene.world.nowMs;
          const outcome = await inner.release();
          // One that ends before the last costs no request, and says so only while the hold goes on.
          if (isOver && outcome === "released") checkHeard(scene, [view], "given back", releasedMs, "extended");
          if (view.wasFalse === false) scene.judge.leases.ask(view);
        } catch (error) {
          if (!(error instanceof LockError)) throw error;
          await release(scene, lease, [view]);
        }
      },
    });
  },
};
