/** A program in another language that carries out orders. The protocol, a line of JSON each way, is in interop/README.md. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Connection } from "../adapters/adapter.js";
import type { CrowdDone, Order } from "./orders.js";

/** Enough for a just-in-time compiler. */
const WARM_UP = { seconds: 1, parallel: 16 };

interface Answer {
  readonly id: number;
  readonly ok: boolean;
  readonly value?: unknown;
  readonly error?: string;
  readonly message?: string;
}

/** A running program. It ends when this process does, because its input ends. */
export class ForeignWorker {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #asked = 0;
  #complaints = "";
  #end: Error | undefined;

  private constructor([command = "", ...words]: readonly string[]) {
    this.#child = spawn(command, words, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#complaints = (this.#complaints + text).slice(-2_000);
    });
    if (this.#child.stdout !== null)
      createInterface({ input: this.#child.stdout }).on("line", (line) => this.#heard(JSON.parse(line) as Answer));
    this.#child.once("error", (error) => this.#ended(error.message));
    this.#child.once("close", (code, signal) => this.#ended(`it ended with ${signal ?? code}`));
    this.#child.stdin?.on("error", () => {}); // "close" reports the end
  }

  /** Starts the program, connects it and warms it up. */
  static async start(program: readonly string[], { port, leaseMs }: Connection): Promise<ForeignWorker> {
    const worker = new ForeignWorker(program);
    await worker.#call("connect", { port, leaseMs });
    await worker.#call("pairs", WARM_UP);
    return worker;
  }

  /** Passes an order on. */
  async obey(order: Order): Promise<unknown> {
    const { task, ...rest } = order;
    const done = await this.#call(task, rest);
    if (task !== "crowd") return done;
    // The program sends four numbers per section in a flat list, like the log of a worker.
    const crowd = done as Omit<CrowdDone, "sections"> & { readonly sections: readonly number[] };
    return { ...crowd, sections: Float64Array.from(crowd.sections) } satisfies CrowdDone;
  }

  #call(verb: string, values: object): Promise<unknown> {
    this.#asked += 1;
    const id = this.#asked;
    return new Promise((resolve, reject) => {
      if (this.#end !== undefined) {
        reject(this.#end);
        return;
      }
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdin?.write(`${JSON.stringify({ id, verb, ...values })}\n`);
    });
  }

  #heard({ id, ok, value, error, message }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (ok) waiting?.resolve(value);
    else waiting?.reject(new Error([error, message].filter((part) => part !== undefined).join(": ")));
  }

  #ended(how: string): void {
    this.#end ??= new Error(`${how}; ${this.#complaints.trim()}`);
    for (const { reject } of this.#waiting.values()) reject(this.#end);
    this.#waiting.clear();
  }
}
