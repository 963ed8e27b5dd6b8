/** Starts fifty processes, calls them at the same time and reads what they left on the server. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect } from "vitest";
import type { Program } from "../../../tests/support/program.js";

export const PROCESSES = 50;
/** Number of processes that start at the same time, because starting one takes a while. */
const STARTING = 5;

/** The processes of one test file. */
export interface ManyProcesses {
  readonly programs: readonly Program[];
  /** Calls the verb on every process. The answers may differ. */
  all<Answer>(verb: string, input?: object | ((at: number) => object)): Promise<Answer[]>;
}

/** Starts the processes for a test file and kills them after it. Each must support the verb `ready`. */
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
    // Throws only after every starter has stopped, because the cleanup kills only processes that exist by then.
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

/** Returns the visitors in the order of their turns. Asserts that no two visits overlap. */
export async function visits(redis: Redis, of: string): Promise<readonly string[]> {
  const seen = await redis.lrange(`${of}:visits`, 0, -1);
  const turns = seen.filter((each) => each.startsWith("begin ")).map((each) => each.slice("begin ".length));
  expect(seen).toEqual(turns.flatMap((turn) => [`begin ${turn}`, `end ${turn}`]));
  return turns;
}

/** Counts how often each answer occurs. */
export function tally(answers: readonly unknown[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[String(answer)] = (counts[String(answer)] ?? 0) + 1;
  return counts;
}
