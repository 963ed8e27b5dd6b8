/** A process of a liveness cell, as seen by the run. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ProcessLines } from "./lines.js";
import type { ActorEvent, ActorSettings, AskAnswer, Asked, Call, Said, StampedeAnswer } from "./messages.js";

// Always the built program, also when this file runs from source in tests, because Node does not run this TypeScript.
const PROGRAM: string = fileURLToPath(new URL("../../../dist/faults/liveness/program.js", import.meta.url));
/** A timeout for a process that does not start or reply; it does not measure speed. */
const PATIENCE_MS = 60_000;

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A process with its proxies. Created by `startActor`. */
export class Actor {
  readonly name: string;
  readonly lines: ProcessLines;
  readonly events: ActorEvent[] = [];
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  readonly #watchers = new Set<() => void>();
  #asked = 0;
  #errors = "";

  /** Use `startActor`. */
  constructor(settings: ActorSettings, lines: ProcessLines) {
    this.name = settings.process;
    this.lines = lines;
    this.#child = fork(PROGRAM, [JSON.stringify(settings)], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    running.add(this.#child);
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-4_000);
    });
    this.#child.on("message", (said: Said) => this.#heard(said));
    this.#child.once("exit", (code, signal) =>
      this.#ended(`${this.name} ended by ${signal ?? `itself, code ${code}`}`),
    );
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves when it has connected its subject. */
  up(): Promise<void> {
    return this.#answerTo(0).then(() => undefined);
  }

  /** Requests an operation without a time limit. */
  call(call: Call): Promise<unknown> {
    this.#asked += 1;
    const asked: Asked = { number: this.#asked, call };
    const answer = this.#answerTo(asked.number, Number.POSITIVE_INFINITY);
    this.#child.send(asked, (error) => {
      if (error !== null) this.#waiting.get(asked.number)?.reject(error);
    });
    return answer;
  }

  /** See `Call`. */
  async ask(call: Omit<Call & { readonly verb: "ask" }, "verb">): Promise<AskAnswer> {
    // The process runs this same code, so its reply has this type.
    return (await this.call({ verb: "ask", ...call })) as AskAnswer;
  }

  /** See `Call`. */
  async stampede(call: Omit<Call & { readonly verb: "stampede" }, "verb">): Promise<StampedeAnswer> {
    // The process runs this same code, so its reply has this type.
    return (await this.call({ verb: "stampede", ...call })) as StampedeAnswer;
  }

  /** See `Call`. */
  async waiters(lockName: string): Promise<number | undefined> {
    // The process runs this same code, so its reply has this type.
    return (await this.call({ verb: "waiters", lockName })) as number | undefined;
  }

  /** The first such event for that lock; undefined if there is none in time. */
  happens(what: ActorEvent["what"], lockName: string, withinMs: number): Promise<ActorEvent | undefined> {
    const find = (): ActorEvent | undefined =>
      this.events.find((event) => event.what === what && event.lockName === lockName);
    return new Promise((resolve) => {
      const look = (): void => {
        const found = find();
        if (found !== undefined) end(found);
      };
      const end = (found: ActorEvent | undefined): void => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => end(undefined), withinMs);
      this.#watchers.add(look);
      look();
    });
  }

  /** Sends SIGSTOP. @returns whether the system reports the process as stopped */
  async freeze(): Promise<boolean> {
    this.#child.kill("SIGSTOP");
    // The signal is delivered when the process is next scheduled.
    for (let tries = 0; tries < 100; tries += 1) {
      if (stateOf(this.pid) === "T") return true;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return false;
  }

  /** Sends SIGCONT. */
  resume(): void {
    this.#child.kill("SIGCONT");
  }

  /** Sends SIGKILL; resolves when the process has ended. A second call does nothing. */
  async kill(): Promise<void> {
    if (!running.has(this.#child)) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  #answerTo(number: number, withinMs: number = PATIENCE_MS): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const late = (): void => reject(new Error(`${this.name} does not answer: ${this.#errors.trim()}`));
      const timer = Number.isFinite(withinMs) ? setTimeout(late, withinMs) : undefined;
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(number);
      };
      this.#waiting.set(number, {
        resolve: (value) => {
          settle();
          resolve(value);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      });
    });
  }

  #heard(said: Said): void {
    if (said.type === "event") {
      this.events.push(said);
      for (const look of this.#watchers) look();
    } else if (said.error === undefined) this.#waiting.get(said.number)?.resolve(said.value);
    else this.#waiting.get(said.number)?.reject(new Error(`${this.name}: ${said.error}`));
  }

  #ended(how: string): void {
    running.delete(this.#child);
    const error = new Error(`${how}: ${this.#errors.trim()}`);
    for (const { reject } of [...this.#waiting.values()]) reject(error);
  }
}

/** The state of a process as Linux reports it; undefined if it cannot be read. */
function stateOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program name before it is in parentheses, and may contain any character.
    return text.slice(text.lastIndexOf(")") + 2)[0];
  } catch {
    return undefined;
  }
}
