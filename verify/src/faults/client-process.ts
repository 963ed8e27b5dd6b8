/** A client process as seen by the run. After a kill, a new process continues under the same name. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Fault, Outcome } from "../history/records.js";
import type { Answered, Asked, Call, ClientSettings, LatchVerb, TakeAnswer } from "./programs/messages.js";
import type { Client, Taken, Work } from "./stage.js";
import { monotonicMs } from "./topology/monotonic.js";

// Always the built program, also when this file runs from source in tests, because Node does not run this TypeScript.
const PROGRAM: string = fileURLToPath(new URL("../../dist/faults/programs/client.js", import.meta.url));
/** A timeout for a process that never starts; it does not measure speed. */
const UP_WITHIN_MS = 60_000;
/** The number of ids per incarnation, more than any run uses. */
const IDS_EACH = 10_000_000;
const INCARNATIONS = 1_000;

/** The settings of all incarnations of a client. */
export interface ClientFacts
  extends Omit<ClientSettings, "process" | "incarnation" | "idBase" | "file" | "wallOffsetMs" | "seed"> {
  readonly name: string;
  /** Index among the clients of the run, from 0. */
  readonly index: number;
  readonly seed: number;
  /** A program to run instead of Node, for example in a separate network namespace. */
  readonly execPath?: string;
  /** The directory for files. */
  readonly directory: string;
  /** Called for faults that the client causes itself. */
  readonly struck: (fault: Fault) => void;
}

/** One process of a client. */
export interface Incarnation {
  readonly name: string;
  readonly process: string;
  readonly sinceMs: number;
  readonly file: string;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A client and its processes. Created by `startClient`. */
export class ClientProcess implements Client {
  readonly #facts: ClientFacts;
  readonly #incarnations: Incarnation[] = [];
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #child: ChildProcess | undefined;
  #asked = 0;
  #wallOffsetMs = 0;
  #errors = "";
  #lastRefusal: string | undefined;
  #isEnding = false;

  /** Use `startClient`. */
  constructor(facts: ClientFacts) {
    this.#facts = facts;
  }

  get name(): string {
    return this.#facts.name;
  }

  /** Why the last `take` failed, in the subject's words; undefined if it succeeded. */
  get lastRefusal(): string | undefined {
    return this.#lastRefusal;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** All processes that have run under this name. */
  get incarnations(): readonly Incarnation[] {
    return this.#incarnations;
  }

  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const { name, index, directory, struck: _, seed, execPath, ...rest } = this.#facts;
    const incarnation = this.#incarnations.length + 1;
    const process = `${name}#${incarnation}`;
    const file = join(directory, `${name}-${incarnation}.jsonl`);
    const settings: ClientSettings = {
      ...rest,
      process,
      incarnation,
      idBase: (index * INCARNATIONS + incarnation) * IDS_EACH,
      file,
      wallOffsetMs: this.#wallOffsetMs,
      seed: seed * INCARNATIONS + incarnation,
    };
    const child = fork(PROGRAM, [JSON.stringify(settings)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      ...(execPath === undefined ? {} : { execPath }),
    });
    this.#child = child;
    this.#isEnding = false;
    running.add(child);
    this.#incarnations.push({ name, process, sinceMs: monotonicMs(), file });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-4_000);
    });
    child.on("message", (answered: Answered) => this.#answered(answered));
    child.once("exit", (code, signal) =>
      this.#exited(child, `${process} ended by ${signal ?? `itself, code ${code}`}`),
    );
    const up = new Promise<unknown>((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
    const guard = setTimeout(() => child.kill("SIGKILL"), UP_WITHIN_MS);
    await up.finally(() => clearTimeout(guard));
  }

  async work(work: Work): Promise<void> {
    await this.#ask({ verb: "work", work });
  }

  async rest(): Promise<void> {
    if (this.#child !== undefined) await this.#ask({ verb: "rest" });
  }

  async take(options: Parameters<Client["take"]>[0]): Promise<Taken | undefined> {
    // The process runs this same code, so its reply has this type.
    const { taken, refusal } = (await this.#ask({ verb: "take", options })) as TakeAnswer;
    this.#lastRefusal = refusal;
    return taken;
  }

  async extend(leaseId: number, leaseMs: number): Promise<void> {
    await this.#ask({ verb: "extend", leaseId, leaseMs });
  }

  async release(leaseId: number): Promise<void> {
    await this.#ask({ verb: "release", leaseId });
  }

  async latch(lockName: string, act: LatchVerb, number: number): Promise<Outcome> {
    // The process runs this same code, so its reply has this type.
    return (await this.#ask({ verb: "latch", lockName, act, number })) as Outcome;
  }

  async barrier(lockName: string, act: "arrive" | "reset", waitMs: number): Promise<Outcome> {
    return (await this.#ask({ verb: "barrier", lockName, act, waitMs })) as Outcome;
  }

  async condition(lockName: string, act: "wait" | "signal", waitMs: number): ReturnType<Client["condition"]> {
    return (await this.#ask({ verb: "condition", lockName, act, waitMs })) as Awaited<ReturnType<Client["condition"]>>;
  }

  async sample(leaseId: number): Promise<boolean> {
    return (await this.#ask({ verb: "sample", leaseId })) === true;
  }

  async write(leaseId: number, isFenced: boolean): Promise<boolean> {
    return (await this.#ask({ verb: "write", leaseId, isFenced })) === true;
  }

  async block(forMs: number): Promise<void> {
    await this.#ask({ verb: "block", forMs });
  }

  async stepWall(offsetMs: number): Promise<void> {
    this.#wallOffsetMs = offsetMs;
    await this.#ask({ verb: "stepWall", offsetMs });
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  async kill(): Promise<void> {
    await this.#die("J03", (child) => void child.kill("SIGKILL"));
  }

  async vanish(how: "exit" | "error"): Promise<void> {
    // The process may end before it replies.
    await this.#die("J04", () => void this.#ask({ verb: "vanish", how }).catch(() => {}));
  }

  /** Ends the process normally. @returns what it left behind */
  async close(): Promise<readonly string[]> {
    const child = this.#child;
    if (child === undefined) return [];
    child.kill("SIGCONT");
    const left = (await this.#ask({ verb: "close" })) as readonly string[];
    await this.stop();
    return left;
  }

  /** Kills the process if it runs; this does not count as a fault of the run. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#isEnding = true;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  async #die(id: string, how: (child: ChildProcess) => void): Promise<void> {
    const child = this.#child;
    const process = this.#incarnations.at(-1)?.process;
    if (child === undefined || process === undefined) return;
    this.#isEnding = true;
    const beganMs = monotonicMs();
    const exited = once(child, "exit") as Promise<[number | null, string | null]>;
    how(child);
    const [code, signal] = await exited;
    const proof = signal === null ? `exit code ${code}` : `exit by ${signal}`;
    this.#facts.struck({ type: "fault", id, beganMs, endedMs: Number.POSITIVE_INFINITY, target: process, proof });
  }

  #ask(call: Call): Promise<unknown> {
    const child = this.#child;
    if (child === undefined) return Promise.reject(new Error(`${this.name} does not run`));
    this.#asked += 1;
    const asked: Asked = { number: this.#asked, call };
    return new Promise((resolve, reject) => {
      this.#waiting.set(asked.number, { resolve, reject });
      child.send(asked, (error) => {
        if (error !== null) reject(error);
      });
    });
  }

  #answered({ number, value, error }: Answered): void {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(`${this.name}: ${error}`));
  }

  #exited(child: ChildProcess, how: string): void {
    running.delete(child);
    if (this.#child === child) this.#child = undefined;
    const why = new Error(this.#isEnding ? how : `${how}: ${this.#errors.trim()}`);
    for (const { reject } of this.#waiting.values()) reject(why);
    this.#waiting.clear();
  }
}

/** Starts a client process, and resolves when its subject is connected. @throws Error  it did not start */
export async function startClient(facts: ClientFacts): Promise<ClientProcess> {
  const client = new ClientProcess(facts);
  await client.start();
  return client;
}
