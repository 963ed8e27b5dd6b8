/**
 * The connections of one process to the server: a Store whose requests, replies and messages take virtual time.
 *
 * One connection sends scripts, another one receives messages. Each connection keeps the order of its data, unless a
 * fault delays or duplicates a request. The server is an embedded one that is called at the instant at which a
 * request arrives, so it runs the production scripts one at a time.
 */
import type { EmbeddedStore } from "@holdfast/embedded";
import { type Inbox, type Reply, type Script, type Store, StoreError } from "holdfast";
import { Ears } from "./ears.js";
import type { NetworkHost } from "./network-host.js";
import type { SimulatedProcess } from "./process.js";
import type { Random } from "./random.js";
import { Requests, type Stalled } from "./requests.js";
import { Travel } from "./travel.js";

export type { Call, NetworkHost } from "./network-host.js";

type Connection = "commands" | "inbox";

/** The interval of attempts to reach a server that is down, in ms. */
const TRY_AGAIN_MS = 20;

/** The store of one simulated process. */
export class NetworkStore implements Store {
  readonly kind = "simulated";
  readonly #host: NetworkHost;
  readonly #process: SimulatedProcess;
  readonly #travel: Travel;
  readonly #requests: Requests;
  readonly #ears: Ears;
  readonly #listeners = new Set<{ readonly call: (connection: Connection) => void }>();
  readonly #isNative: boolean;
  #isClosed = false;

  /** @param isNative  whether it releases locks natively */
  constructor(host: NetworkHost, process: SimulatedProcess, server: EmbeddedStore, random: Random, isNative: boolean) {
    this.#isNative = isNative;
    this.#host = host;
    this.#process = process;
    this.#travel = new Travel(host, process, random);
    this.#requests = new Requests(this.#travel, server);
    this.#ears = new Ears(this.#travel, server);
  }

  /** Whether the server can reach the process. If not, its waiters may be considered dead. */
  get isListening(): boolean {
    return this.#ears.isListening;
  }

  /** The number of open subscriptions. */
  get earCount(): number {
    return this.#ears.count;
  }

  run(script: Script, keys: readonly string[], args: readonly (string | number)[], timeoutMs: number): Promise<Reply> {
    if (!this.#isClosed) return this.#requests.run(script, keys, args, timeoutMs);
    const facts = { mayHaveRun: false, transient: false, cause: "this store was closed" };
    return Promise.reject(new StoreError(script.name, facts));
  }

  /** As `Store.releasesNatively`. */
  releasesNatively(): boolean {
    return this.#isNative;
  }

  inbox(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    return this.#ears.open(channel, onMessage, timeoutMs);
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
   * Cuts a connection, which is restored after `backInMs`.
   *
   * @param resends  whether the client resends unanswered requests, as client libraries do if configured to
   * @param goneInMs  when the server notices
   */
  cut(connection: Connection, backInMs: number, resends: boolean, goneInMs: number): void {
    const isCut = connection === "commands" ? this.#requests.cut(resends) : this.#ears.cut(goneInMs);
    if (!isCut) return;
    this.#travel.later(backInMs, `${this.#process.name} ${connection} back`, () => {
      this.#process.enter(() => this.#comeBack(connection));
    });
  }

  /**
   * Stops all data on the command connection. @returns the argument for `overtake`; undefined if the connection is
   * cut
   */
  stall(): Stalled | undefined {
    return this.#requests.stall();
  }

  /**
   * Replaces the stalled connection with a new one, and delivers its data `lingersMs` later, as if a host in between
   * had buffered it.
   */
  overtake(stalled: Stalled, backInMs: number, resends: boolean, lingersMs: number): void {
    // If it was cut in the meantime, it has been replaced already.
    if (this.#requests.isStalled(stalled)) this.cut("commands", backInMs, resends, 0);
    this.#requests.arriveLate(stalled, lingersMs);
  }

  /** Drops what the process has sent in this instant. */
  dropUnsent(): void {
    this.#requests.dropUnsent();
  }

  /** The process has ended; the server notices after `goneInMs`. */
  abandon(goneInMs: number): void {
    this.#requests.abandon();
    this.#ears.abandon(goneInMs);
  }

  #comeBack(connection: Connection): void {
    if (this.#host.isServerDown) {
      const again = (): void => this.#process.enter(() => this.#comeBack(connection));
      this.#travel.later(TRY_AGAIN_MS, `${this.#process.name} tries again`, again);
      return;
    }
    if (connection === "commands") this.#host.cameBack(this.#process);
    const back = connection === "commands" ? this.#requests : this.#ears;
    back.comeBack(() => this.#tell(connection));
  }

  #tell(connection: Connection): void {
    for (const { call } of [...this.#listeners]) call(connection);
  }
}
