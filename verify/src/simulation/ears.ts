/** The subscriber connection of a process: its subscriptions and their messages. */
import type { EmbeddedStore } from "@holdfast/embedded";
import { type Inbox, StoreError } from "holdfast";
import type { NetworkHost } from "./network-host.js";
import type { SimulatedProcess } from "./process.js";
import type { Travel } from "./travel.js";

interface Ear {
  readonly channel: string;
  readonly onMessage: (message: string) => void;
  isClosed: boolean;
  onServer: Promise<Inbox> | undefined;
  /** Resolves the promise of `inbox`. A second call does nothing. */
  opened: () => void;
}

/** A simulated subscriber connection. */
export class Ears {
  readonly #host: NetworkHost;
  readonly #process: SimulatedProcess;
  readonly #server: EmbeddedStore;
  readonly #travel: Travel;
  readonly #ears = new Set<Ear>();
  #generation = 0;
  #isUp = true;

  constructor(travel: Travel, server: EmbeddedStore) {
    this.#host = travel.host;
    this.#process = travel.process;
    this.#server = server;
    this.#travel = travel;
  }

  /** Whether the server can reach it. If not, the waiters of this process may be considered dead. */
  get isListening(): boolean {
    return this.#isUp && [...this.#ears].every(({ onServer }) => onServer !== undefined);
  }

  /** The number of open subscriptions. */
  get count(): number {
    return this.#ears.size;
  }

  /** Same as `inbox` of a Store. */
  open(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    const ear: Ear = { channel, onMessage, isClosed: false, onServer: undefined, opened: () => {} };
    this.#ears.add(ear);
    return new Promise((resolve, reject) => {
      const timeout = this.#process.startTimer(
        () => {
          this.#close(ear);
          reject(new StoreError(channel, { mayHaveRun: true, transient: true, cause: "no answer in time" }));
        },
        timeoutMs,
        "subscribe time-out",
      );
      ear.opened = () => {
        timeout.cancel();
        resolve({ close: async () => this.#close(ear) });
      };
      this.#subscribe(ear, () => {});
    });
  }

  /** Cuts the connection; the server notices after `goneInMs`. @returns false if it was already cut */
  cut(goneInMs: number): boolean {
    if (!this.#isUp) return false;
    this.#isUp = false;
    this.abandon(goneInMs);
    return true;
  }

  /** Reconnects; calls `tell` when all subscriptions are restored. */
  comeBack(tell: () => void): void {
    this.#isUp = true;
    // Waiters that began while the server could not reach them may have been considered dead.
    this.#host.deafened(this.#process);
    let waiting = 0;
    for (const ear of this.#ears) {
      waiting += 1;
      this.#subscribe(ear, () => {
        waiting -= 1;
        if (waiting === 0) tell();
      });
    }
  }

  /** Removes all subscribers; the server notices after `goneInMs`. */
  abandon(goneInMs: number): void {
    this.#generation += 1;
    this.#host.deafened(this.#process);
    for (const ear of this.#ears) {
      const { onServer } = ear;
      ear.onServer = undefined;
      if (onServer === undefined) continue;
      const gone = (): void => void onServer.then((inbox) => inbox.close());
      if (goneInMs <= 0) gone();
      else this.#travel.later(goneInMs, `the server misses ${this.#process.name}`, gone);
    }
  }

  #subscribe(ear: Ear, ready: () => void): void {
    const generation = this.#generation;
    const isCurrent = (): boolean => generation === this.#generation && !ear.isClosed;
    const label = `${this.#process.name} subscribe`;
    // The connection may be lost while the subscription is delayed; waiters are served after the reconnect.
    if (!this.#isUp) return;
    this.#travel.inOrder("request", this.#travel.weather, label, () => {
      if (!isCurrent() || this.#host.isServerDown) return;
      const onServer = this.#server.inbox(ear.channel, (message) => this.#message(ear, generation, message), 0);
      ear.onServer = onServer;
      void onServer.then(() =>
        this.#travel.inOrder("message", this.#travel.weather, `${label}d`, () => {
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
    if (generation !== this.#generation) return;
    const { weather, random } = this.#travel;
    const label = `${this.#process.name} message ${message}`;
    const deliver = (): void => {
      if (generation !== this.#generation) return;
      this.#process.enter(() => {
        if (ear.isClosed) return;
        this.#host.heard(this.#process, message);
        ear.onMessage(message);
      });
    };
    if (random.chance(weather.messageLoss)) {
      this.#host.trace(`${label} lost`);
      this.#host.deafened(this.#process);
      return;
    }
    this.#travel.inOrder("message", weather, label, deliver);
    if (random.chance(weather.duplicate)) this.#travel.later(weather.lateMs * random.next(), `${label} again`, deliver);
  }

  #close(ear: Ear): void {
    ear.isClosed = true;
    this.#ears.delete(ear);
    const { onServer } = ear;
    if (onServer === undefined) return;
    this.#travel.inOrder("request", this.#travel.weather, `${this.#process.name} unsubscribe`, () => {
      void onServer.then((inbox) => inbox.close());
    });
  }
}
