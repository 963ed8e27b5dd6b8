/**
 * A program in a separate process that a test calls: the test sends a verb and an input, and the program replies.
 *
 * A test can freeze or kill the program at any moment. Every program ends with the test process that started it, and
 * errors include its standard error output.
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
  /** Resolves when the process has exited. */
  readonly ended: Promise<ProgramEnd>;
  /** Its standard error output so far. */
  readonly complaints: string;
  /** Calls a verb of the program. @throws Error  the verb's error with its name and code, or the program ended first */
  call<Answer>(verb: string, input?: object): Promise<Answer>;
  /** Resolves with the next message that has this name and is not a reply. @throws Error  the program ended first */
  heard(name: string): Promise<unknown>;
  /** Sends SIGSTOP. */
  freeze(): void;
  /** Sends SIGCONT. */
  resume(): void;
  /** Sends SIGKILL and resolves when the process has exited and its sockets are closed. */
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

/** Starts the module at `url` and passes `args` to it as a JSON string. */
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
  // The last messages may arrive after the exit event.
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
            // The caller states the type of the reply.
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
        // The listener stays until its message arrives, because messages read together arrive without a pause.
        const onMessage = (message: Message): void => {
          if (message.name !== name) return;
          child.off("message", onMessage);
          resolve(message.value);
        };
        child.on("message", onMessage);
        void gone.then(({ code, signal }) =>
          reject(new Error(`the program ended (${signal ?? code}) before it sent ${name}: ${complaints}`)),
        );
      });
      // The test may no longer wait for this promise when the program ends.
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
