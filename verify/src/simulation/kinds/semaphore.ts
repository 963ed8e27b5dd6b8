import type { Semaphore } from "holdfast";
import { call } from "../calling.js";
import { leaseProgram } from "../lease-program.js";
import { membersOf } from "../observer.js";
import type { Kind, Scene } from "../scene.js";

/** The number of permits of every semaphore. */
export const PERMITS = 4;

/**
 * Reduces the number of permits for a while. It never grows, so that checks against the original number stay valid.
 */
async function resize(scene: Scene, lock: Semaphore): Promise<void> {
  const to = async (permits: number): Promise<void> => {
    await call(scene, () => lock.resize(permits).then(() => null), 0);
  };
  await to(scene.session.amount);
  await scene.member.process.sleep(scene.session.holdMs);
  await to(PERMITS);
}

/** The semaphore; callers ask for one to four of four permits. */
export const semaphore: Kind = {
  name: "semaphore",
  ran(world, _, { script, keys: [key], args }, outcome) {
    const observer = world.recorder.witness?.observer;
    if (observer === undefined || !script.name.startsWith("permits/")) return;
    const [before, after] = [membersOf(observer.before, key), membersOf(observer.after, key)];
    const used = after.get("used") ?? 0;
    // With fewer permits than are held, nothing may be granted until the held ones fit.
    if (used > (before.get("used") ?? 0) && used > (after.get("capacity") ?? 0))
      world.judge.violated("X1", `${script.name} gave permits until ${used} of ${after.get("capacity")} were held`);
    // The call ends with an error, so the error must be justified.
    const wanted = Number(args[script.args.indexOf("weight")]);
    if (outcome === "heavy" && wanted <= (after.get("capacity") ?? 0))
      world.judge.violated("L2", `${script.name} refused ${wanted} of ${after.get("capacity")} permits as too many`);
  },
  run(scene) {
    const { lockName, session } = scene;
    const lock = scene.member.holdfast.semaphore(lockName, { permits: PERMITS });
    if (session.way === "resize") return resize(scene, lock);
    const permits = session.amount;
    return leaseProgram(scene, {
      acquire: (options) => lock.acquire({ ...options, permits }),
      tryAcquire: (options) => lock.tryAcquire({ ...options, permits }),
      run: (work, options) => lock.run(work, { ...options, permits }),
      holds: (lease) => [{ lockName, lease, weight: lease.permits, limit: PERMITS }],
      forceRelease: (whose) => lock.forceRelease(whose),
      canMove: true,
    });
  },
};
