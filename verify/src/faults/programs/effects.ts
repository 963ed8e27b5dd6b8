/** The connection of one process to the protected resource. */
import { createConnection, type Socket } from "node:net";
import type { WriteAsked, Written } from "../resource.js";

/** Writes effects; connects at the first one. */
export class EffectLine {
  readonly #port: number;
  readonly #waiting = new Map<number, { resolve(isAccepted: boolean): void; reject(error: Error): void }>();
  #socket: Socket | undefined;
  #rest = "";
  #asked = 0;

  constructor(port: number) {
    this.#port = port;
  }

  /** Requests one effect. @returns whether it was accepted @throws Error  the resource did not answer */
  write(effect: Omit<WriteAsked, "number">): Promise<boolean> {
    this.#asked += 1;
    const number = this.#asked;
    const socket = this.#socket ?? this.#open();
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      const asked: WriteAsked = { number, ...effect };
      socket.write(`${JSON.stringify(asked)}\n`);
    });
  }

  /** Closes the connection. */
  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #open(): Socket {
    const socket = createConnection({ port: this.#port, host: "127.0.0.1" }).setEncoding("utf8").setNoDelay();
    this.#socket = socket;
    socket.on("data", (text: string) => this.#heard(text));
    const fail = (): void => {
      if (this.#socket === socket) this.#socket = undefined;
      for (const { reject } of this.#waiting.values()) reject(new Error("the resource is gone"));
      this.#waiting.clear();
    };
    socket.on("error", fail).on("close", fail);
    return socket;
  }

  #heard(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const { number, isAccepted } = JSON.parse(line) as Written;
      this.#waiting.get(number)?.resolve(isAccepted);
      this.#waiting.delete(number);
    }
  }
}
