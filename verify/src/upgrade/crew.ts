/** The processes of a phase: started, killed, replaced and stopped. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Build } from "./builds.js";
import type { Orders } from "./worker.js";

/** Compiled, also where tests load this file as it is. */
const WORKER: string = fileURLToPath(new URL("../../dist/upgrade/worker.js", import.meta.url));
/** A guard against a process that does not end by itself. */
const END_MS = 60_000;

/** A worker that runs. */
export interface Member {
  readonly number: number;
  readonly build: Build;
  readonly longShare: number;
}

/** See the file header. */
export class Crew {
  readonly #orders: Pick<Orders, "port" | "seed" | "mistake"> & { readonly entries: Readonly<Record<Build, string>> };
  readonly #running = new Map<number, { readonly member: Member; readonly child: ChildProcess }>();
  #lastNumber = 0;
  /** Processes that ended by themselves. */
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

  /** Starts one, and waits until it works. */
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

  /** Has one end with what it holds, and waits for its end. */
  async kill(number: number): Promise<void> {
    await this.#end(number, "die");
    this.kills += 1;
  }

  /** Has one end in order. */
  async stop(number: number): Promise<void> {
    await this.#end(number, "stop");
  }

  /** Ends all of them in order. */
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
