/** The processes of a phase: started, killed, replaced and stopped. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Build } from "./builds.js";
import type { Orders } from "./worker.js";

/** Always the compiled file, also when tests load this file as source. */
const WORKER: string = fileURLToPath(new URL("../../dist/upgrade/worker.js", import.meta.url));
/** A timeout for a process that does not end by itself. */
const END_MS = 60_000;

/** A running worker. */
export interface Member {
  readonly number: number;
  readonly build: Build;
  readonly longShare: number;
}

/** The workers of a phase. */
export class Crew {
  readonly #orders: Pick<Orders, "port" | "seed" | "mistake"> & { readonly entries: Readonly<Record<Build, string>> };
  readonly #running = new Map<number, { readonly member: Member; readonly child: ChildProcess }>();
  #lastNumber = 0;
  /** Processes that ended unexpectedly. */
  readonly crashes: string[] = [];
  kills = 0;

  constructor(
    orders: Pick<Orders, "port" | "seed" | "mistake"> & { readonly entries: Readonly<Record<Build, string>> },
  ) {
    this.#orders = orders;
  }

  get members(): readonly Member[] {
    return [...this.#running.values()].map(({ member }) => member);
  }

  /** Starts a worker, and waits until it is working. */
  async add(build: Build, longShare: number): Promise<void> {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const { entries, ...rest } = this.#orders;
    const orders: Orders = { ...rest, number, build, entry: entries[build], longShare };
    const child = fork(WORKER, [JSON.stringify(orders)], {
      execArgv: [],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const member = { number, build, longShare };
    this.#running.set(number, { member, child });
    child.on("exit", (code, signal) => {
      if (this.#running.has(number))
        this.crashes.push(`worker ${number} (${build}) ended by itself: ${signal ?? code}`);
    });
    await Promise.race([once(child, "message"), once(child, "exit")]);
  }

  /** Makes a worker crash while it holds locks, and waits until it has ended. */
  async kill(number: number): Promise<void> {
    await this.#end(number, "die");
    this.kills += 1;
  }

  /** Stops a worker normally. */
  async stop(number: number): Promise<void> {
    await this.#end(number, "stop");
  }

  /** Stops all workers normally. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((number) => this.stop(number)));
  }

  async #end(number: number, word: "die" | "stop"): Promise<void> {
    const one = this.#running.get(number);
    if (one === undefined) return;
    this.#running.delete(number);
    const { child, member } = one;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.send(word);
    const guard = setTimeout(() => {
      this.crashes.push(`worker ${number} (${member.build}) did not end when it was told to ${word}`);
      child.kill("SIGKILL");
    }, END_MS);
    await exited;
    clearTimeout(guard);
  }
}
