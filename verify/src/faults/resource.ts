/**
 * The resource that a lock protects: a set for each name, to which holders add values.
 *
 * It lives in the process of the run and is used over TCP, so clock faults, freezes and kills of clients do not
 * affect it. Checking the token and adding the value is one step, because this process runs one request at a time. A
 * value that is sent again gets its first reply.
 */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Effect, FinalState } from "../history/records.js";
import { monotonicMs } from "./topology/monotonic.js";

/** A write request, as one line of JSON. */
export interface WriteAsked extends Pick<Effect, "resource" | "process" | "lockName" | "leaseId" | "token" | "value"> {
  readonly number: number;
  /** False accepts every token, for controls. */
  readonly isFenced: boolean;
}

/** The reply, as one line of JSON. */
export interface Written {
  readonly number: number;
  readonly isAccepted: boolean;
}

interface State {
  /** The highest accepted token. */
  mark: number;
  sequence: number;
  readonly values: Set<string>;
  readonly answers: Map<string, boolean>;
}

/** The resource. */
export class GuardedResource {
  readonly #effects: Effect[] = [];
  readonly #states = new Map<string, State>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  /** Starts to listen on a free loopback port. */
  static async open(): Promise<GuardedResource> {
    const resource = new GuardedResource();
    resource.#server.listen(0, "127.0.0.1");
    await once(resource.#server, "listening");
    return resource;
  }

  private constructor() {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** The port on which it listens. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** All requested effects so far. Whether a client received the reply is unknown here. */
  get effects(): readonly Effect[] {
    return this.#effects;
  }

  /** The current contents of each set. */
  get finalStates(): readonly FinalState[] {
    return Array.from(this.#states, ([resource, { values }]) => ({
      type: "final-state",
      resource,
      values: [...values],
    }));
  }

  /** Checks and adds in one step. @returns whether it was accepted */
  write({ isFenced, ...asked }: Omit<WriteAsked, "number">): boolean {
    const { resource, token, value } = asked;
    const state = this.#states.get(resource) ?? { mark: 0, sequence: 0, values: new Set(), answers: new Map() };
    this.#states.set(resource, state);
    const earlier = state.answers.get(value);
    if (earlier !== undefined) return earlier;
    const isAccepted = !isFenced || (token !== null && token >= state.mark);
    if (isAccepted) {
      if (isFenced && token !== null) state.mark = token;
      state.values.add(value);
    }
    state.answers.set(value, isAccepted);
    state.sequence += 1;
    const { sequence } = state;
    this.#effects.push({ type: "effect", atMs: monotonicMs(), ...asked, sequence, isAccepted, isAcknowledged: false });
    return isAccepted;
  }

  /** Closes all connections. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let rest = "";
    socket.setEncoding("utf8").setNoDelay();
    socket.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { number, ...asked } = JSON.parse(line) as WriteAsked;
        const written: Written = { number, isAccepted: this.write(asked) };
        socket.write(`${JSON.stringify(written)}\n`);
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
