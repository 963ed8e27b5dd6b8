/** Model of a Java service with Redisson 4.7: runs the scripts of java-scripts.ts, waits and renews. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { FAIR, FAIR_GIVE_UP, FENCED, LOCK, READ, SPIN, type TypeScripts, WRITE } from "./java-scripts.js";
import type { Asked, Held, Locked, LockType, Maker, Settings, Side } from "./side.js";

const SCRIPTS: Readonly<Record<LockType, TypeScripts>> = {
  lock: LOCK,
  fenced: FENCED,
  spin: SPIN,
  fair: FAIR,
  read: READ,
  write: WRITE,
};
const LATCH_MS = 20_000;

function prefixed(prefix: string, name: string): string {
  return name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}

/** Makes sides of the model. */
export const JAVA_MODEL: Maker = {
  label: "the model of Java",
  make: async (settings) => new JavaModel(settings),
};

/** State of one Java thread. */
interface Thread {
  readonly what: Locked;
  readonly raw: string;
  readonly owner: string;
  /** Channel that the thread subscribes to. */
  readonly ownChannel: string;
  /** Channel that messages are published to, without the owner suffix of a fair waiter. */
  readonly channel: string;
  readonly waitMs: number;
}

export class JavaModel implements Side {
  readonly label = "the model of Java";
  readonly redis: Redis;
  readonly #subscriber: Redis;
  readonly #settings: Settings;
  readonly #uuid: string = randomUUID();
  readonly #renewals = new Set<NodeJS.Timeout>();
  readonly #listeners = new Map<string, Set<() => void>>();
  #threads = 40;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.redis = new Redis({ port: settings.port });
    this.#subscriber = new Redis({ port: settings.port });
    for (const client of [this.redis, this.#subscriber]) client.on("error", () => {});
    this.#subscriber.on("message", (channel: string) => {
      for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener();
    });
  }

  async acquire(what: Locked, asked: Asked): Promise<Held | undefined> {
    const thread = this.#thread(what, asked.waitMs);
    const leaseMs = asked.leaseMs ?? this.#settings.watchdogMs;
    if (asked.waitMs === 0) {
      return (await this.#try(thread, leaseMs, false)) === null ? this.#hold(thread, asked) : undefined;
    }
    const isHeld = what.type === "spin" ? await this.#spin(thread, leaseMs) : await this.#wait(thread, leaseMs);
    if (isHeld) return this.#hold(thread, asked);
    if (what.type === "fair") await this.#giveUp(thread);
    return undefined;
  }

  async isLocked({ type, name }: Locked): Promise<boolean> {
    const raw = this.#raw(name);
    if (type !== "read" && type !== "write") return (await this.redis.exists(raw)) === 1;
    const mode = await this.redis.hget(raw, "mode");
    if (type === "write") return mode === "write";
    return mode === "read" || (mode === "write" && (await this.redis.hlen(raw)) > 2);
  }

  async forceUnlock(what: Locked): Promise<boolean> {
    const { raw, channel } = this.#thread(what, 0);
    const keys = what.type === "fair" ? [raw, ...this.#queue(raw)] : [raw];
    return (await this.#run(SCRIPTS[what.type].force, keys, [channel, this.#now()])) === 1;
  }

  async die(): Promise<void> {
    for (const renewal of this.#renewals) clearInterval(renewal);
    this.redis.disconnect();
    this.#subscriber.disconnect();
  }

  close(): Promise<void> {
    return this.die();
  }

  /** Acquires again with the thread of a hold, as reentrant code does. */
  async reenter(held: Held, leaseMs: number): Promise<boolean> {
    return (await this.#try((held as ModelHeld).thread, leaseMs, false)) === null;
  }

  /** Acquires the read lock with the thread of a write hold, as a service that downgrades does. */
  async readUnder(held: Held, leaseMs: number): Promise<Held | undefined> {
    const { thread } = held as ModelHeld;
    const what: Locked = { ...thread.what, type: "read" };
    const reader = { ...thread, what, owner: thread.owner.replace(/:write$/, "") };
    return (await this.#try(reader, leaseMs, false)) === null ? this.#hold(reader, { waitMs: 0, leaseMs }) : undefined;
  }

  #now(): number {
    return Date.now() + (this.#settings.clockAheadMs ?? 0);
  }

  #raw(name: string): string {
    return (this.#settings.prefix ?? "") + name;
  }

  #queue(raw: string): [queue: string, timeout: string] {
    return [prefixed("redisson_lock_queue", raw), prefixed("redisson_lock_timeout", raw)];
  }

  #thread(what: Locked, waitMs: number): Thread {
    this.#threads += 1;
    const raw = this.#raw(what.name);
    const isReadWrite = what.type === "read" || what.type === "write";
    const channel = prefixed(isReadWrite ? "redisson_rwlock" : "redisson_lock__channel", raw);
    const owner = `${this.#uuid}:${this.#threads}${what.type === "write" ? ":write" : ""}`;
    const ownChannel = what.type === "fair" ? `${channel}:${owner}` : channel;
    const placeMs = waitMs > 0 && waitMs < Infinity ? waitMs : (this.#settings.fairWaitMs ?? 300_000);
    return { what, raw, owner, channel, ownChannel, waitMs: what.type === "fair" ? placeMs : waitMs };
  }

  #run(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.redis.eval(script, keys.length, ...keys, ...args);
  }

  /** Resolves to null if acquired, else to the milliseconds to wait. */
  async #try({ what: { type }, raw, owner, waitMs }: Thread, leaseMs: number, queue: boolean): Promise<number | null> {
    const { acquire } = SCRIPTS[type];
    const answer = await (type === "fenced"
      ? this.#run(acquire, [raw, prefixed("redisson_lock_token", raw)], [leaseMs, owner])
      : type === "fair"
        ? this.#run(acquire, [raw, ...this.#queue(raw)], [leaseMs, owner, waitMs, this.#now(), queue ? 1 : 0])
        : this.#run(acquire, [raw], [leaseMs, owner, `${owner}:write`, raw.includes("{") ? raw : `{${raw}}`]));
    return answer === null ? null : Number(answer);
  }

  async #wait(thread: Thread, leaseMs: number): Promise<boolean> {
    const untilMs = Date.now() + thread.waitMs;
    if ((await this.#try(thread, leaseMs, true)) === null) return true;
    const subscriber = await this.#listen(thread.ownChannel);
    try {
      for (;;) {
        const leftMs = untilMs - Date.now();
        if (leftMs <= 0) return false;
        const ttlMs = await this.#try(thread, leaseMs, true);
        if (ttlMs === null) return true;
        await subscriber.message(ttlMs >= 0 ? Math.min(ttlMs, untilMs - Date.now()) : untilMs - Date.now());
      }
    } finally {
      await subscriber.close();
    }
  }

  async #spin(thread: Thread, leaseMs: number): Promise<boolean> {
    const untilMs = Date.now() + thread.waitMs;
    for (let pauseMs = 1; Date.now() < untilMs; pauseMs = Math.min(pauseMs * 2, 128)) {
      if ((await this.#try(thread, leaseMs, false)) === null) return true;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return false;
  }

  async #giveUp({ raw, owner, waitMs }: Thread): Promise<void> {
    await this.#run(FAIR_GIVE_UP, this.#queue(raw), [owner, waitMs]);
  }

  async #hold(thread: Thread, { leaseMs }: Asked): Promise<ModelHeld> {
    const { what, raw, owner, channel } = thread;
    const scripts = SCRIPTS[what.type];
    const { watchdogMs } = this.#settings;
    const holds = raw.includes("{") ? raw : `{${raw}}`;
    let renewal: NodeJS.Timeout | undefined;
    const stop = (): void => {
      clearInterval(renewal);
      if (renewal !== undefined) this.#renewals.delete(renewal);
    };
    if (leaseMs === undefined) {
      renewal = setInterval(() => {
        this.#run(scripts.renew, [raw], [watchdogMs, owner, holds]).then(
          (answer) => {
            if (answer === 0) stop();
          },
          () => {},
        );
      }, watchdogMs / 3);
      this.#renewals.add(renewal);
    }
    const token =
      what.type === "fenced" ? Number(await this.redis.get(prefixed("redisson_lock_token", raw))) : undefined;
    const latch = `${prefixed("redisson_unlock_latch", raw)}:${randomUUID().replaceAll("-", "")}`;
    return {
      thread,
      token,
      unlock: async () => {
        stop();
        const last = what.type === "fair" ? this.#now() : holds;
        const keys = [raw, latch, ...(what.type === "fair" ? this.#queue(raw) : [])];
        const answer = await this.#run(scripts.unlock, keys, [channel, leaseMs ?? watchdogMs, owner, LATCH_MS, last]);
        await this.redis.del(latch);
        return answer !== null;
      },
    };
  }

  async #listen(channel: string): Promise<{ message(mostMs: number): Promise<void>; close(): Promise<void> }> {
    let permits = 0;
    let wake: (() => void) | undefined;
    const listener = (): void => {
      if (wake === undefined) permits += 1;
      else wake();
    };
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    await this.#subscriber.subscribe(channel);
    return {
      message: (mostMs) =>
        new Promise((resolve) => {
          if (permits > 0) {
            permits -= 1;
            resolve();
            return;
          }
          const timer = setTimeout(() => wake?.(), mostMs);
          wake = () => {
            clearTimeout(timer);
            wake = undefined;
            resolve();
          };
        }),
      close: async () => {
        listeners.delete(listener);
        if (listeners.size === 0) await this.#subscriber.unsubscribe(channel).catch(() => {});
      },
    };
  }
}

interface ModelHeld extends Held {
  readonly thread: Thread;
}
