import { LockError } from "holdfast";
import { checkHeard, release } from "../holding.js";
import { leaseProgram } from "../lease-program.js";
import type { Kind } from "../scene.js";
import { exclusive } from "./mutex.js";

/** The reentrant mutex; every second caller acquires it again while it holds, and releases that first. */
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
          // Releasing an inner lease sends no request, and reports success only while the hold lasts.
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
