import { LockError } from "holdfast";
import { leaseProgram } from "../lease-program.js";
import type { Kind } from "../scene.js";
import { exclusive } from "./mutex.js";

/** The election; leaders change their value while they lead. */
export const election: Kind = {
  name: "election",
  run(scene) {
    const { lockName, session } = scene;
    const lock = scene.member.holdfast.election(lockName);
    return leaseProgram(scene, {
      ...exclusive(lock, lockName),
      acquire: (options) => lock.campaign(`candidate ${session.id}`, options),
      async meanwhile(leadership, [view]) {
        if (session.amount !== 1) return;
        try {
          await leadership.proclaim("something new");
        } catch (error) {
          if (!(error instanceof LockError)) throw error;
          if (view !== undefined) scene.judge.leases.ask(view);
        }
      },
    });
  },
};
