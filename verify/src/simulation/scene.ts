/** What a caller in a simulated process works with. */
import type { Reply } from "holdfast";
import type { Judge } from "./judge.js";
import type { Joined } from "./member.js";
import type { Call } from "./network.js";
import type { Session } from "./plan.js";
import type { SimulatedProcess } from "./process.js";
import type { Random } from "./random.js";
import type { World } from "./world.js";

/** One session on its stage. */
export interface Scene {
  readonly world: World;
  readonly judge: Judge;
  readonly session: Session;
  readonly member: Joined;
  readonly random: Random;
  /** Name of the lock that the session is about. */
  readonly lockName: string;
}

/** How one kind is driven. A new kind is one more file that exports one, and a line in kinds/table.ts. */
export interface Kind {
  readonly name: string;
  /**
   * Whoever waits here may wait for somebody who never comes: it gives up after so long at most. Absent: somebody
   * always comes.
   */
  readonly patienceMs?: number;
  /** Does what the session says, in its process. */
  run(scene: Scene): Promise<void>;
  /** Called after a script has run, with its reply. */
  ran?(world: World, process: SimulatedProcess, call: Call, outcome: string | undefined, reply: Reply): void;
  /** What is left to judge when all is over. */
  finish?(world: World): void;
}
