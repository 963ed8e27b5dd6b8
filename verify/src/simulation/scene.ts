/** The environment of a caller in a simulated process. */
import type { Reply } from "holdfast";
import type { Judge } from "./judge.js";
import type { Joined } from "./member.js";
import type { Call } from "./network.js";
import type { Session } from "./plan.js";
import type { SimulatedProcess } from "./process.js";
import type { Random } from "./random.js";
import type { World } from "./world.js";

/** A session with its environment. */
export interface Scene {
  readonly world: World;
  readonly judge: Judge;
  readonly session: Session;
  readonly member: Joined;
  readonly random: Random;
  /** The name of the session's lock. */
  readonly lockName: string;
}

/**
 * How the simulation uses one kind of lock. A new kind needs one more file that exports one, and a line in
 * kinds/table.ts.
 */
export interface Kind {
  readonly name: string;
  /** How long a caller may wait for others that never arrive before it gives up. Absent: others always arrive. */
  readonly patienceMs?: number;
  /** Runs the session in its process. */
  run(scene: Scene): Promise<void>;
  /** Called after a script has run, with its reply. */
  ran?(world: World, process: SimulatedProcess, call: Call, outcome: string | undefined, reply: Reply): void;
  /** Checks at the end of the run. */
  finish?(world: World): void;
}
