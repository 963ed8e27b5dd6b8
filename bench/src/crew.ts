/** The processes that do the work, from the side of the one that measures. Each ends with it, and by its own id. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Connection } from "./adapters/adapter.js";
import type { Order } from "./worker/orders.js";

const PROGRAM = fileURLToPath(new URL("./worker/main.js", import.meta.url));
/** For starting, connecting and answering beyond what was ordered; a peer that starves must not hold up the others. */
const GRACE_MS = 15_000;

/** What a crew is made of. */
export interface CrewOptions {
  /** Name of the adapter, or "publish". */
  readonly name: string;
  readonly connection: Connection;
  readonly processes: number;
  /** Whether workers can collect their garbage when told to. */
  readonly weighing?: boolean;
}

/** Those that run now; whatever ends this process must not leave them behind. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** So many processes, each with a contestant of its own. */
export class Crew {
  readonly #children: readonly ChildProcess[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
    for (const child of children) {
      running.add(child);
      child.once("exit", () => running.delete(child));
    }
  }

  /** Starts all of them and waits until all are connected. */
  static async start({ name, connection, processes, weighing }: CrewOptions): Promise<Crew> {
    // Some peers add more listeners to one emitter than Node.js finds usual, and warn of it at every start.
    const execArgv = ["--no-warnings", ...(weighing === true ? ["--expose-gc"] : [])];
    const words = [name, JSON.stringify(connection)];
    const crew = new Crew(
      Array.from({ length: processes }, () => fork(PROGRAM, words, { execArgv, serialization: "advanced" })),
    );
    try {
      await Promise.all(crew.#children.map((child) => answerOf(child, GRACE_MS)));
    } catch (error) {
      await crew.end();
      throw error;
    }
    return crew;
  }

  /** The process ids of the workers. */
  get pids(): readonly number[] {
    return this.#children.flatMap(({ pid }) => pid ?? []);
  }

  /**
   * Gives each worker an order and waits for all answers.
   *
   * @param expectedMs  how long it takes; later than a grace after it they have failed
   */
  async all<Result>(orderOf: (index: number) => Order, expectedMs: number): Promise<readonly Result[]> {
    const answers = this.#children.map((child) => answerOf(child, expectedMs + GRACE_MS));
    for (const [index, child] of this.#children.entries()) child.send(orderOf(index));
    // Only worker/main.ts writes this answer.
    return (await Promise.all(answers)) as Result[];
  }

  /** Ends all of them immediately, whatever they are doing. */
  async end(): Promise<void> {
    const exits = this.#children
      .filter((child) => child.exitCode === null && child.signalCode === null)
      .map((child) => once(child, "exit"));
    for (const child of this.#children) child.kill("SIGKILL");
    await Promise.all(exits);
  }
}

function answerOf(child: ChildProcess, withinMs: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer);
      child.off("exit", onExit);
      child.off("message", onMessage);
    };
    const onExit = (code: number | null): void => {
      settle();
      reject(new Error(`a working process ended early, with ${code}`));
    };
    const onMessage = (message: unknown): void => {
      settle();
      const { failure, result } = message as { readonly failure?: string; readonly result?: unknown };
      if (failure === undefined) resolve(result);
      else reject(new Error(failure));
    };
    const timer = setTimeout(() => {
      settle();
      reject(new Error(`a working process did not answer within ${Math.round(withinMs / 1_000)} s`));
    }, withinMs);
    child.on("exit", onExit);
    child.on("message", onMessage);
  });
}
