/** The connection on which a process sends scripts and receives replies. */
import type { EmbeddedStore } from "@holdfast/embedded";
import { type Reply, type Script, StoreError } from "holdfast";
import { sha1Of } from "holdfast/internal";
import type { Call, NetworkHost } from "./network-host.js";
import type { SimulatedProcess } from "./process.js";
import type { Travel } from "./travel.js";

interface Pending extends Call {
  readonly settle: (end: Reply | StoreError) => void;
  isSent: boolean;
  /** It was written to a socket, but the process ended before the socket sent it. */
  isDropped: boolean;
}

/** The time between the two commands of a native release: none, or enough for a few requests of other clients. */
const LOOKS_AFTER_MS = [0, 0.5, 2];

/** The commands of a native release, as scripts, because an embedded server runs nothing else. */
const DELETE_IF_EQUAL = command(
  "DELIFEQ",
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
);
const EXISTS = command("EXISTS", "return redis.call('EXISTS', KEYS[1])");

function command(name: string, source: string): Script {
  return { name, source, sha1: sha1Of({ source }), keys: ["key"], args: ["..."], replies: [] };
}

/** The duration of an instant. */
const INSTANT_MS = 0.01;

/** Requests that were sent on a stalled connection. */
export type Stalled = Pending[];

/** A simulated command connection. */
export class Requests {
  readonly #host: NetworkHost;
  readonly #process: SimulatedProcess;
  readonly #server: EmbeddedStore;
  readonly #travel: Travel;
  readonly #pending = new Map<number, Pending>();
  #stalled: Stalled | undefined;
  #calls = 0;
  #generation = 0;
  #isUp = true;

  constructor(travel: Travel, server: EmbeddedStore) {
    this.#host = travel.host;
    this.#process = travel.process;
    this.#server = server;
    this.#travel = travel;
  }

  /** Same as `run` of a Store. */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[], timeoutMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
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
        calledMs: this.#host.nowMs,
        isSent: false,
        isDropped: false,
        settle: (end) => {
          if (!this.#pending.delete(id)) return;
          timeout.cancel();
          if (end instanceof StoreError) reject(end);
          else resolve(end);
        },
      };
      this.#pending.set(id, call);
      this.#host.sent(this.#process, call);
      if (this.#isUp) this.#send(call);
    });
  }

  /** Cuts the connection. @returns false if it was already cut */
  cut(resends: boolean): boolean {
    if (!this.#isUp) return false;
    this.#isUp = false;
    this.#stalled = undefined;
    this.#generation += 1;
    if (resends) return true;
    for (const call of [...this.#pending.values()]) {
      if (call.isSent) this.#process.enter(() => call.settle(failure(call, "the connection was lost")));
    }
    return true;
  }

  /** Reconnects: calls `tell`, then sends all unanswered requests over the new connection. */
  comeBack(tell: () => void): void {
    this.#isUp = true;
    tell();
    for (const call of this.#pending.values()) this.#send(call);
  }

  /** Stalls the connection. @returns the requests sent on it; undefined if there is no connection */
  stall(): Stalled | undefined {
    if (!this.#isUp) return undefined;
    this.#stalled ??= [];
    return this.#stalled;
  }

  /** Whether this is the current connection. */
  isStalled(stalled: Stalled): boolean {
    return this.#stalled === stalled;
  }

  /** Delivers its requests late, in order. Their replies are dropped. */
  arriveLate(stalled: Stalled, afterMs: number): void {
    for (const call of stalled.splice(0))
      this.#travel.later(afterMs, `${this.#label(call)} arrives over the old connection`, () =>
        this.#arrive(call, true),
      );
  }

  /** Drops what was sent in this instant. */
  dropUnsent(): void {
    const { nowMs } = this.#host;
    for (const call of this.#pending.values()) if (nowMs - call.calledMs <= INSTANT_MS) call.isDropped = true;
  }

  /** Drops all further replies. */
  abandon(): void {
    this.#generation += 1;
  }

  #send(call: Pending): void {
    const { weather, random } = this.#travel;
    call.isSent = true;
    const label = this.#label(call);
    if (this.#stalled !== undefined) {
      this.#stalled.push(call);
      this.#host.trace(`${label} stalls`);
      return;
    }
    if (random.chance(weather.requestLoss)) {
      this.#host.trace(`${label} lost`);
      return;
    }
    if (random.chance(weather.late)) {
      this.#travel.later(random.between(0, weather.lateMs), `${label} arrives late`, () => this.#arrive(call, false));
    } else {
      this.#travel.inOrder("request", weather, `${label} arrives`, () => this.#arrive(call, false));
    }
  }

  #arrive(call: Pending, isCopy: boolean): void {
    if (call.isDropped) return;
    if (this.#host.serverFrozenUntilMs > this.#host.nowMs) {
      this.#host.plan(this.#host.serverFrozenUntilMs, `#${call.id} waits for the server`, () =>
        this.#arrive(call, isCopy),
      );
      return;
    }
    if (this.#host.isServerDown) return;
    // A copy never arrives before the original, unless the connection was lost in between.
    const { weather, random } = this.#travel;
    if (!isCopy && random.chance(weather.duplicate)) {
      const what = `${this.#label(call)} arrives again`;
      this.#travel.later(random.between(0, weather.lateMs), what, () => this.#arrive(call, true));
    }
    const generation = this.#generation;
    if (call.script.isNative === true) {
      void this.#releaseNatively(call, isCopy, generation);
      return;
    }
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

  /** Runs the two commands of a native release. Requests of other clients can run in between. */
  async #releaseNatively(call: Pending, isCopy: boolean, generation: number): Promise<void> {
    const [lock = "", queue = ""] = call.keys;
    const deleted = await this.#server.run(DELETE_IF_EQUAL, [lock], call.args, 0);
    this.#host.ran(this.#process, call, deleted);
    // May be long enough for other requests. Not drawn, so that the rest of the run is the same without native releases.
    const afterMs = LOOKS_AFTER_MS[call.id % LOOKS_AFTER_MS.length] ?? 0;
    this.#travel.later(afterMs, `${this.#label(call)} looks for waiters`, () => {
      // After the server or this connection has ended, nothing more from it is executed.
      if (isCopy || generation !== this.#generation || this.#host.isServerDown) return;
      this.#server.run(EXISTS, [queue], [], 0).then(
        (isThere) => this.#reply(call, generation, deleted === 0 ? 0 : isThere === 0 ? 1 : 2),
        (error: unknown) => this.#reply(call, generation, error as StoreError),
      );
    });
  }

  #reply(call: Pending, generation: number, reply: Reply | StoreError): void {
    const { weather, random } = this.#travel;
    const label = `${this.#label(call)} answer`;
    if (random.chance(weather.replyLoss)) {
      this.#host.trace(`${label} lost`);
      return;
    }
    this.#travel.inOrder("reply", weather, label, () => {
      if (generation !== this.#generation) return;
      this.#process.enter(() => {
        // The connection was replaced in the meantime, so the reply is dropped.
        if (!this.#pending.has(call.id)) return;
        if (!(reply instanceof StoreError)) this.#host.heard(this.#process, { call, reply });
        call.settle(reply);
      });
    });
  }

  #label({ id, script }: Call): string {
    return `${this.#process.name}#${id} ${script.name}`;
  }
}

function failure(call: Call, cause: string): StoreError {
  return new StoreError(call.script.name, { mayHaveRun: true, transient: true, cause });
}
