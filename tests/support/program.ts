/**
 * A program in a process of its own, called from a test: a verb and an input go out, its answer comes back.
 *
 * It can be frozen and killed at any moment, which is what it is for. Every program is ended with the test that
 * started it, and what it wrote to standard error is part of every failure.
 */
import { type ChildProcess, fork } from "node:child_process";

/** How a process ended. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A running program. */
export interface Program {
  readonly pid: number;
  /** Resolves when the process is gone. */
  readonly ended: Promise<ProgramEnd>;
  /** What it wrote to standard error up to now. */
  readonly complaints: string;
  /** Calls one of the program's verbs. @throws Error  as the verb threw, with its name and code; or it ended first */
  call<Answer>(verb: string, input?: object): Promise<Answer>;
  /** Resolves at the next message that is not an answer and has this name. @throws Error  it ended first */
  heard(name: string): Promise<unknown>;
  /** SIGSTOP. */
  freeze(): void;
  /** SIGCONT. */
  resume(): void;
  /** SIGKILL; resolves when the process is gone, and its sockets with it. */
  kill(): Promise<ProgramEnd>;
}

interface Message {
  readonly id?: number;
  readonly name?: string;
  readonly value?: unknown;
  readonly error?: { readonly message: string; readonly name: string; readonly code?: string };
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts the module at `url` with `args`, which come to it as one JSON text. */
export function startProgram(url: URL, args: object = {}): Program {
  const child = fork(url, [JSON.stringify(args)], {
    execArgv: [],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  running.add(child);
  let complaints = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const ended = new Promise<ProgramEnd>((resolve) => {
    child.once("exit", (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
  // What it told last may be read after its end is known.
  const gone = new Promise((resolve) => child.once("disconnect", resolve)).then(() => ended);
  let lastId = 0;

  return {
    pid: child.pid as number,
    ended,
    get complaints() {
      return complaints;
    },
    call<Answer>(verb: string, input: object = {}): Promise<Answer> {
      lastId += 1;
      const id = lastId;
      return new Promise((resolve, reject) => {
        const onMessage = (message: Message): void => {
          if (message.id !== id) return;
          child.off("message", onMessage);
          if (message.error === undefined) {
            // The test that calls the verb knows what the program answers.
            resolve(message.value as Answer);
          } else {
            reject(Object.assign(new Error(message.error.message), message.error));
          }
        };
        child.on("message", onMessage);
        void ended.then(({ code, signal }) =>
          reject(new Error(`the program ended (${signal ?? code}) before it answered ${verb}: ${complaints}`)),
        );
        child.send({ id, verb, input }, (error) => {
          if (error !== null) reject(error);
        });
      });
    },
    heard(name) {
      const heard = new Promise((resolve, reject) => {
        // Until it has come: messages that are read together leave no time to listen anew between them.
        const onMessage = (message: Message): void => {
          if (message.name !== name) return;
          child.off("message", onMessage);
          resolve(message.value);
        };
        child.on("message", onMessage);
        void gone.then(({ code, signal }) =>
          reject(new Error(`the program ended (${signal ?? code}) before it told ${name}: ${complaints}`)),
        );
      });
      // Nobody may wait for it any more when the program is ended.
      heard.catch(() => {});
      return heard;
    },
    freeze: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    kill() {
      child.kill("SIGKILL");
      return ended;
    },
  };
}
