/** A real server that runs scripts in isolation: the state before, one call, the state after. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import type { Script } from "../../src/core/store.js";

/** The keys of one lock and of one client. */
export const KEYS: Readonly<Record<string, string>> = {
  lock: "hf:mutex:{t}",
  fence: "hf:mutex:{t}:fence",
  queue: "hf:mutex:{t}:queue",
  handed: "hf:mutex:{t}:handed",
  pause: "hf:mutex:{t}:pause",
  condition: "hf:mutex:{t}:condition:c",
  signalled: "hf:mutex:{t}:condition:c:signalled",
  client: "hf:client:t",
  inbox: "hf:in:{t}:A",
  resumed: "hf:mutex:{t}:resumed",
  marker: "hf:lineage",
};

/** Prefix of the clients' inbox channels. The client id follows it. */
export const INBOX = "hf:in:";

/** State of one lock on the server. */
export interface LockState {
  readonly lock?: string;
  readonly fence?: number;
  readonly queue?: readonly string[];
  readonly handed?: string;
  readonly pause?: string;
}

/** Remaining lifetime of each key in ms: -1 if the key never expires, -2 if it does not exist. */
export interface Lifetimes {
  readonly lock: number;
  readonly fence: number;
  readonly queue: number;
  readonly handed: number;
  readonly pause: number;
}

/** One server per test file, empty before each test. Only the clients `A` and `B` are subscribed. */
export class ScriptServer {
  #server!: RedisServer;
  #redis!: Redis;
  #subscriber!: Redis;
  /** Published messages, as `<client> <message>`. */
  readonly heard: string[] = [];

  constructor() {
    beforeAll(async () => {
      this.#server = await startRedis();
      this.#redis = new Redis({ port: this.#server.port });
      this.#subscriber = new Redis({ port: this.#server.port });
      this.#subscriber.on("message", (channel: string, message: string) => {
        this.heard.push(`${channel.slice(INBOX.length)} ${message}`);
      });
      await this.#subscriber.subscribe(`${INBOX}A`, `${INBOX}B`);
    });
    beforeEach(async () => {
      await this.#redis.flushall();
      await this.#subscriber.ping();
      this.heard.length = 0;
    });
    afterAll(async () => {
      this.#redis.disconnect();
      this.#subscriber.disconnect();
      await this.#server.stop();
    });
  }

  get redis(): Redis {
    return this.#redis;
  }

  /** Runs a script with the keys and arguments that its header names. */
  run(script: Script, args: Readonly<Record<string, string | number>> = {}): Promise<unknown> {
    const { leaseMs = 30_000 } = args;
    const fenceMs = Number(leaseMs) + 600_000;
    const given: Readonly<Record<string, string | number>> = {
      inbox: INBOX,
      freed: 0,
      block: 1,
      enqueue: 1,
      note: "",
      leaseMs,
      fenceMs,
      ...args,
    };
    const words = script.args.map((name) => {
      const value = given[name];
      if (value === undefined) throw new Error(`${script.name} needs ${name}`);
      return value;
    });
    return this.#redis.eval(
      script.source,
      script.keys.length,
      ...script.keys.map((key) => KEYS[key] as string),
      ...words.map(String),
    );
  }

  /** Writes a state. Leases last a minute by default. */
  async set({ lock, fence, queue = [], handed }: LockState, leaseMs = 60_000): Promise<void> {
    if (lock !== undefined) await this.#redis.set(KEYS.lock as string, lock, "PX", leaseMs);
    if (fence !== undefined) await this.#redis.set(KEYS.fence as string, fence, "PX", 700_000);
    for (const [i, waiter] of queue.entries()) await this.#redis.zadd(KEYS.queue as string, i + 1, waiter);
    if (handed !== undefined) await this.#redis.set(KEYS.handed as string, handed, "PX", 90_000);
    if (queue.length > 0) await this.#redis.pexpire(KEYS.queue as string, 50_000);
  }

  /** Reads the state. Missing keys are left out. */
  async state(): Promise<LockState> {
    const [lock, fence, queue, handed, pause] = await Promise.all([
      this.#redis.get(KEYS.lock as string),
      this.#redis.get(KEYS.fence as string),
      this.#redis.zrange(KEYS.queue as string, "0", "-1"),
      this.#redis.get(KEYS.handed as string),
      this.#redis.get(KEYS.pause as string),
    ]);
    return {
      ...(lock === null ? {} : { lock }),
      ...(fence === null ? {} : { fence: Number(fence) }),
      ...(queue.length === 0 ? {} : { queue }),
      ...(handed === null ? {} : { handed }),
      ...(pause === null ? {} : { pause }),
    };
  }

  async lifetimes(): Promise<Lifetimes> {
    // One script reads all lifetimes at the same moment.
    const source = "local left = {} for i, key in ipairs(KEYS) do left[i] = redis.call('PTTL', key) end return left";
    const names = [KEYS.lock, KEYS.fence, KEYS.queue, KEYS.handed, KEYS.pause] as string[];
    const left = (await this.#redis.eval(source, names.length, ...names)) as number[];
    const [lock = -2, fence = -2, queue = -2, handed = -2, pause = -2] = left;
    return { lock, fence, queue, handed, pause };
  }

  /** The server's clock in µs. */
  async nowUs(): Promise<number> {
    const [seconds, micros] = await this.#redis.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  }

  /** Returns the messages, after all earlier ones have arrived. */
  async messages(): Promise<string[]> {
    await this.#subscriber.ping();
    return [...this.heard];
  }
}
