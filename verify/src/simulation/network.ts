/**
 * The way of one process to the server: a Store whose requests, replies and messages travel through virtual time.
 *
 * One connection sends scripts and another listens. What goes over one connection keeps its order, unless a fault
 * lets a request or its copy come late. The server is an embedded one, asked only at the instant at which a request
 * arrives, so the production scripts run, one at a time.
 */
import type { EmbeddedStore } from "@holdfast/embedded";
import { type Inbox, type Reply, type Script, type Store, StoreError } from "holdfast";
import type { Host, SimulatedProcess } from "./process.js";
import type { Random } from "./random.js";
import type { Weather } from "./weather.js";

/** What the network asks the world, and tells it. */
export interface NetworkHost extends Host {
  /** Until when the server answers nothing; what arrives before waits, or is lost if it is down. */
  readonly serverFrozenUntilMs: number;
  readonly isServerDown: boolean;
  weatherOf(process: SimulatedProcess): Weather;
  /** The script as it is to be run, which is another one in a test of the simulation itself. */
  scriptOf(script: Script): Script;
  /** A process has sent a request. */
  sent(process: SimulatedProcess, call: Call): void;
  /** A request was carried out. */
  ran(process: SimulatedProcess, call: Call, reply: Reply): void;
  /** A reply, or a message, has reached the process. */
  heard(process: SimulatedProcess, what: { readonly call: Call; readonly reply: Reply } | string): void;
  /** The server has sent a message to the process. */
  pushed(process: SimulatedProcess, message: string): void;
  /** A process that listened did not for a while, or missed a message. */
  deafened(process: SimulatedProcess): void;
}

/** One request for a script. */
export interface Call {
  readonly id: number;
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

interface Pending extends Call {
  readonly settle: (end: Reply | StoreError) => void;
  isSent: boolean;
}

interface Ear {
  readonly channel: string;
  readonly onMessage: (message: string) => void;
  isClosed: boolean;
  onServer: Promise<Inbox> | undefined;
  /** Resolves the promise of `inbox`. A second call does nothing. */
  opened: () => void;
}

type Connection = "commands" | "inbox";

/** See the file header. */
export class NetworkStore implements Store {
  readonly kind = "simulated";
  readonly #host: NetworkHost;
  readonly #process: SimulatedProcess;
  readonly #server: EmbeddedStore;
  readonly #random: Random;
  readonly #listeners = new Set<{ readonly call: (connection: Connection) => void }>();
  readonly #pending = new Map<number, Pending>();
  readonly #ears = new Set<Ear>();
  readonly #isUp = { commands: true, inbox: true };
  readonly #generation = { commands: 0, inbox: 0 };
  readonly #lastArrivalMs = { request: 0, reply: 0, message: 0 };
  #calls = 0;
  #isClosed = false;

  constructor(host: NetworkHost, process: SimulatedProcess, server: EmbeddedStore, random: Random) {
    this.#host = host;
    this.#process = process;
    this.#server = server;
    this.#random = random;
  }

  /** Whether the server can reach it: what waits here may be taken for dead if not. */
  get isListening(): boolean {
    return this.#isUp.inbox && [...this.#ears].every(({ onServer }) => onServer !== undefined);
  }

  /** Subscriptions that were not closed. */
  get earCount(): number {
    return this.#ears.size;
  }

  run(script: Script, keys: readonly string[], args: readonly (string | number)[], timeoutMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        reject(new StoreError(script.name, { mayHaveRun: false, transient: false, cause: "this store was closed" }));
        return;
      }
      this.#calls += 1;
      const id = this.#calls;
      const timeout = this.#process.startTimer(
        () => call.settle(failure(call, "no answer in time")),
        timeoutMs,
        "time-out",
      );
      const call: Pending = {
        id,
        script,
        keys,
        args,
        isSent: false,
        settle: (end) => {
          if (!this.#pending.delete(id)) return;
          timeout.cancel();
          if (end instanceof StoreError) reject(end);
          else resolve(end);
        },
      };
      this.#pending.set(id, call);
      this.#host.sent(this.#process, call);
      if (this.#isUp.commands) this.#send(call);
    });
  }

  inbox(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    const ear: Ear = { channel, onMessage, isClosed: false, onServer: undefined, opened: () => {} };
    this.#ears.add(ear);
    return new Promise((resolve, reject) => {
      const timeout = this.#process.startTimer(
        () => {
          this.#closeEar(ear);
          reject(new StoreError(channel, { mayHaveRun: true, transient: true, cause: "no answer in time" }));
        },
        timeoutMs,
        "subscribe time-out",
      );
      ear.opened = () => {
        timeout.cancel();
        resolve({ close: async () => this.#closeEar(ear) });
      };
      this.#subscribe(ear, () => {});
    });
  }

  onReconnect(listener: (connection: Connection) => void): () => void {
    const entry = { call: listener };
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  /**
   * Cuts a connection, which comes back after `backInMs`.
   *
   * @param resends  whether the client sends again what had no answer, as client libraries do if they are told to
   * @param goneInMs  when the server notices
   */
  cut(connection: Connection, backInMs: number, resends: boolean, goneInMs: number): void {
    if (!this.#isUp[connection]) return;
    this.#isUp[connection] = false;
    this.#generation[connection] += 1;
    if (connection === "commands" && !resends) {
      for (const call of [...this.#pending.values()]) {
        if (call.isSent) this.#process.enter(() => call.settle(failure(call, "the connection was lost")));
      }
    }
    if (connection === "inbox") this.#deafen(goneInMs);
    this.#host.plan(this.#host.nowMs + backInMs, `${this.#process.name} ${connection} back`, () => {
      this.#process.enter(() => this.#comeBack(connection));
    });
  }

  /** The process is gone; the server notices after `goneInMs`. */
  abandon(goneInMs: number): void {
    this.#generation.commands += 1;
    this.#generation.inbox += 1;
    this.#deafen(goneInMs);
  }

  #comeBack(connection: Connection): void {
    if (this.#host.isServerDown) {
      this.#later(20, `${this.#process.name} tries again`, () => this.#process.enter(() => this.#comeBack(connection)));
      return;
    }
    this.#isUp[connection] = true;
    if (connection === "commands") {
      this.#tell("commands");
      for (const call of this.#pending.values()) this.#send(call);
      return;
    }
    // Whoever began to wait while the server could not reach it may have been taken for dead.
    this.#host.deafened(this.#process);
    let waiting = 0;
    for (const ear of this.#ears) {
      waiting += 1;
      this.#subscribe(ear, () => {
        waiting -= 1;
        if (waiting === 0) this.#tell("inbox");
      });
    }
  }

  #tell(connection: Connection): void {
    for (const { call } of [...this.#listeners]) call(connection);
  }

  #send(call: Pending): void {
    const weather = this.#host.weatherOf(this.#process);
    const random = this.#random;
    call.isSent = true;
    const label = `${this.#process.name}#${call.id} ${call.script.name}`;
    if (random.chance(weather.requestLoss)) {
      this.#host.trace(`${label} lost`);
      return;
    }
    if (random.chance(weather.late)) {
      this.#later(random.between(0, weather.lateMs), `${label} arrives late`, () => this.#arrive(call, false));
    } else {
      this.#inOrder("request", weather, `${label} arrives`, () => this.#arrive(call, false));
    }
  }

  #arrive(call: Pending, isCopy: boolean): void {
    if (this.#host.serverFrozenUntilMs > this.#host.nowMs) {
      this.#host.plan(this.#host.serverFrozenUntilMs, `#${call.id} waits for the server`, () =>
        this.#arrive(call, isCopy),
      );
      return;
    }
    if (this.#host.isServerDown) return;
    // A copy never comes before the first, unless the connection was lost in between.
    const weather = this.#host.weatherOf(this.#process);
    if (!isCopy && this.#random.chance(weather.duplicate)) {
      const what = `${this.#process.name}#${call.id} ${call.script.name} arrives again`;
      this.#later(this.#random.between(0, weather.lateMs), what, () => this.#arrive(call, true));
    }
    const generation = this.#generation.commands;
    const script = this.#host.scriptOf(call.script);
    this.#server.run(script, call.keys, call.args, 0).then(
      (reply) => {
        this.#host.ran(this.#process, call, reply);
        if (!isCopy) this.#reply(call, generation, reply);
      },
      (error: unknown) => {
        this.#host.trace(`${this.#process.name}#${call.id} ${script.name} failed: ${String((error as Error).cause)}`);
        if (!isCopy) this.#reply(call, generation, error as StoreError);
      },
    );
  }

  #reply(call: Pending, generation: number, reply: Reply | StoreError): void {
    const weather = this.#host.weatherOf(this.#process);
    const label = `${this.#process.name}#${call.id} ${call.script.name} answer`;
    if (this.#random.chance(weather.replyLoss)) {
      this.#host.trace(`${label} lost`);
      return;
    }
    this.#inOrder("reply", weather, label, () => {
      if (generation !== this.#generation.commands) return;
      this.#process.enter(() => {
        // Read off a connection that has been given up meanwhile: nobody is there to take it.
        if (!this.#pending.has(call.id)) return;
        if (!(reply instanceof StoreError)) this.#host.heard(this.#process, { call, reply });
        call.settle(reply);
      });
    });
  }

  #subscribe(ear: Ear, ready: () => void): void {
    const generation = this.#generation.inbox;
    const isCurrent = (): boolean => generation === this.#generation.inbox && !ear.isClosed;
    const label = `${this.#process.name} subscribe`;
    // While it is down the connection is lost too, and whoever waits is served when it is back.
    if (!this.#isUp.inbox) return;
    this.#inOrder("request", this.#host.weatherOf(this.#process), label, () => {
      if (!isCurrent() || this.#host.isServerDown) return;
      const onServer = this.#server.inbox(ear.channel, (message) => this.#message(ear, generation, message), 0);
      ear.onServer = onServer;
      void onServer.then(() =>
        this.#inOrder("message", this.#host.weatherOf(this.#process), `${label}d`, () => {
          if (!isCurrent()) return;
          this.#process.enter(() => {
            if (ear.isClosed) return;
            this.#host.deafened(this.#process);
            ear.opened();
            ready();
          });
        }),
      );
    });
  }

  #message(ear: Ear, generation: number, message: string): void {
    this.#host.pushed(this.#process, message);
    if (generation !== this.#generation.inbox) return;
    const weather = this.#host.weatherOf(this.#process);
    const label = `${this.#process.name} message ${message}`;
    const deliver = (): void => {
      if (generation !== this.#generation.inbox) return;
      this.#process.enter(() => {
        if (ear.isClosed) return;
        this.#host.heard(this.#process, message);
        ear.onMessage(message);
      });
    };
    if (this.#random.chance(weather.messageLoss)) {
      this.#host.trace(`${label} lost`);
      this.#host.deafened(this.#process);
      return;
    }
    this.#inOrder("message", weather, label, deliver);
    if (this.#random.chance(weather.duplicate))
      this.#later(weather.lateMs * this.#random.next(), `${label} again`, deliver);
  }

  #closeEar(ear: Ear): void {
    ear.isClosed = true;
    this.#ears.delete(ear);
    const { onServer } = ear;
    if (onServer === undefined) return;
    this.#inOrder("request", this.#host.weatherOf(this.#process), `${this.#process.name} unsubscribe`, () => {
      void onServer.then((inbox) => inbox.close());
    });
  }

  #deafen(goneInMs: number): void {
    this.#host.deafened(this.#process);
    for (const ear of this.#ears) {
      const { onServer } = ear;
      ear.onServer = undefined;
      if (onServer === undefined) continue;
      const gone = (): void => void onServer.then((inbox) => inbox.close());
      if (goneInMs <= 0) gone();
      else this.#later(goneInMs, `the server misses ${this.#process.name}`, gone);
    }
  }

  #inOrder(way: "request" | "reply" | "message", weather: Weather, what: string, happen: () => void): void {
    const delayMs = this.#random.chance(weather.slow)
      ? this.#random.between(0, weather.slowMs)
      : this.#random.between(0.05, 2);
    const atMs = Math.max(this.#lastArrivalMs[way], this.#host.nowMs + delayMs);
    this.#lastArrivalMs[way] = atMs;
    this.#host.plan(atMs, what, happen);
  }

  #later(delayMs: number, what: string, happen: () => void): void {
    this.#host.plan(this.#host.nowMs + delayMs, what, happen);
  }
}

function failure(call: Call, cause: string): StoreError {
  return new StoreError(call.script.name, { mayHaveRun: true, transient: true, cause });
}
