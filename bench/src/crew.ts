/** Worker processes, as seen by the measuring process. They end when it does, and are killed by process id. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Connection } from "./adapters/adapter.js";
import type { Order } from "./worker/orders.js";

const PROGRAM = fileURLToPath(new URL("./worker/main.js", import.meta.url));
/** Extra time for starting, connecting and replying. Then a worker counts as failed, so that others need not wait for it. */
const GRACE_MS = 15_000;

/** Options of a crew. */
export interface CrewOptions {
  /** Name of the adapter, or "publish". */
  readonly name: string;
  readonly connection: Connection;
  readonly processes: number;
  /** Whether workers can run the garbage collector on request. */
  readonly weighing?: boolean;
}

/** Running workers, which must not outlive this process. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Worker processes that each have their own contestant. */
export class Crew {
  readonly #children: readonly ChildProcess[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
    for (const child of children) {
      running.add(child);
      child.once("exit", () => running.delete(child));
    }
  }

  /** Starts the processes and waits until all are connected. */
  static async start({ name, connection, processes, weighing }: CrewOptions): Promise<Crew> {
    // Some peers add so many listeners to one emitter that Node.js warns at every start.
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

  /** Starts the processes and prepares them. Ends them if that fails: they would keep this process alive. */
  static async prepared<Result>(options: CrewOptions, prepare: (crew: Crew) => Promise<Result>): Promise<Result> {
    const crew = await Crew.start(options);
    try {
      return await prepare(crew);
    } catch (error) {
      await crew.end();
      throw error;
    }
  }

  /** The process ids of the workers. */
  get pids(): readonly number[] {
    return this.#children.flatMap(({ pid }) => pid ?? []);
  }

  /**
   * Sends each worker an order and waits for all replies.
   *
   * @param expectedMs  the expected duration; a worker fails if it has not replied within this time plus a grace period
   */
  async all<Result>(orderOf: (index: number) => Order, expectedMs: number): Promise<readonly Result[]> {
    const answers = this.#children.map((child) => answerOf(child, expectedMs + GRACE_MS));
    for (const [index, child] of this.#children.entries()) child.send(orderOf(index));
    // Only worker/main.ts sends these replies.
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
    const onExit = (code: number | null, signal: string | null): void => {
      settle();
      reject(new Error(`a worker process ended early, with ${signal ?? `exit code ${code}`}`));
    };
    const onMessage = (message: unknown): void => {
      settle();
      const { failure, result } = message as { readonly failure?: string; readonly result?: unknown };
      if (failure === undefined) resolve(result);
      else reject(new Error(failure));
    };
    const timer = setTimeout(() => {
      settle();
      reject(new Error(`a worker process did not reply within ${Math.round(withinMs / 1_000)} s`));
    }, withinMs);
    child.on("exit", onExit);
    child.on("message", onMessage);
  });
}
