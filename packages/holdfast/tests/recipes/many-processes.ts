/** Fifty processes that are called at once, and what they have left at the server. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect } from "vitest";
import type { Program } from "../../../../tests/support/program.js";

export const PROCESSES = 50;
/** How many of them start at once: each takes its time. */
const STARTING = 5;

/** The processes of one file. */
export interface ManyProcesses {
  readonly programs: readonly Program[];
  /** Calls that verb of all of them; what they have to say may differ. */
  all<Answer>(verb: string, input?: object | ((at: number) => object)): Promise<Answer[]>;
}

/** Starts them for the file. Each has a verb `ready`, and is ended by the file's end. */
export function startMany(start: () => Program): ManyProcesses {
  const programs: Program[] = [];
  beforeAll(async () => {
    let hasFailed = false;
    const startOne = async (): Promise<void> => {
      const started = start();
      programs.push(started);
      await started.call("ready");
    };
    const starting = await Promise.allSettled(
      Array.from({ length: STARTING }, async () => {
        for (let count = 0; count < PROCESSES / STARTING && !hasFailed; count += 1) {
          await startOne().catch((error: unknown) => {
            hasFailed = true;
            throw error;
          });
        }
      }),
    );
    // Only when none of them starts another: what comes next kills all that there are.
    for (const each of starting) if (each.status === "rejected") throw each.reason;
  });
  afterAll(async () => {
    await Promise.all(programs.map((program) => program.kill()));
  });
  return {
    programs,
    all: async (verb, input = {}) =>
      await Promise.all(
        programs.map((program, at) => program.call<never>(verb, typeof input === "function" ? input(at) : input)),
      ),
  };
}

/** Who was inside, in the order of their turns; no two at once. */
export async function visits(redis: Redis, of: string): Promise<readonly string[]> {
  const seen = await redis.lrange(`${of}:visits`, 0, -1);
  const turns = seen.filter((each) => each.startsWith("begin ")).map((each) => each.slice("begin ".length));
  expect(seen).toEqual(turns.flatMap((turn) => [`begin ${turn}`, `end ${turn}`]));
  return turns;
}

/** How often each of them is there. */
export function tally(answers: readonly unknown[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[String(answer)] = (counts[String(answer)] ?? 0) + 1;
  return counts;
}
