/**
 * Semaphores and latches of a Java service with Redisson 4.7, written from the wire reference alone. The model has
 * Redisson's defects and shares no code with Holdfast.
 */
import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import type { PermitPeer } from "./peer.js";

const NEVER = 922_337_203_685_477;

const TRY_SET = `
  if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
  redis.call('SET', KEYS[1], ARGV[1])
  redis.call('PUBLISH', ARGV[2], ARGV[1])
  return 1`;
const ADD = `
  local sum = (redis.call('GET', KEYS[1]) or 0) + ARGV[1]
  redis.call('SET', KEYS[1], string.format('%.0f', sum))
  redis.call('PUBLISH', ARGV[2], string.format('%.0f', sum))
  return 1`;
const TRY_ACQUIRE = `
  local count = redis.call('GET', KEYS[1])
  if count and count - ARGV[1] >= 0 then redis.call('DECRBY', KEYS[1], ARGV[1]) return 1 end
  return 0`;
const RELEASE = "local v = redis.call('INCRBY', KEYS[1], ARGV[1]) redis.call('PUBLISH', ARGV[2], v) return 1";
const DRAIN = `
  local count = redis.call('GET', KEYS[1])
  if not count then return 0 end
  redis.call('SET', KEYS[1], 0)
  return tonumber(count)`;

/** KEYS name, timeout; ARGV channel, now, most. */
const REAP = `
  local gone = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[2], 'LIMIT', 0, ARGV[3])
  if #gone > 0 then
    redis.call('ZREM', KEYS[2], unpack(gone))
    local value = redis.call('INCRBY', KEYS[1], #gone)
    if value > 0 then redis.call('PUBLISH', ARGV[1], value) end
  end`;
/** Additional ARGV deadline, count, ids…: returns OK, `:` and the score to wait for, or nil. */
const TAKE = `${REAP}
  local count = redis.call('GET', KEYS[1])
  if count and count - ARGV[5] >= 0 then
    redis.call('DECRBY', KEYS[1], ARGV[5])
    for i = 6, #ARGV do redis.call('ZADD', KEYS[2], ARGV[4], ARGV[i]) end
    local ttl = redis.call('PTTL', KEYS[1])
    if ttl > 0 then redis.call('PEXPIRE', KEYS[2], ttl) end
    return 'OK'
  end
  local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if first[1] and first[2] ~= '922337203685477' then return ':' .. first[2] end
  return nil`;
/** KEYS name, timeout; ARGV channel, now, id. */
const GIVE = `
  local ends = redis.call('ZSCORE', KEYS[2], ARGV[3])
  if redis.call('ZREM', KEYS[2], ARGV[3]) ~= 1 then return 0 end
  redis.call('PUBLISH', ARGV[1], redis.call('INCRBY', KEYS[1], 1))
  if ends - ARGV[2] <= 0 then return 0 end
  return 1`;
const GIVE_SOME = `
  for i = 4, #ARGV do
    local ends = redis.call('ZSCORE', KEYS[2], ARGV[i])
    if not ends or ends - ARGV[2] <= 0 then return 0 end
  end ${REAP}
  local removed = 0
  for i = 4, #ARGV do removed = removed + redis.call('ZREM', KEYS[2], ARGV[i]) end
  redis.call('INCRBY', KEYS[1], removed)
  redis.call('PUBLISH', ARGV[1], removed)
  return removed`;
const UPDATE = `${REAP}
  if not redis.call('ZSCORE', KEYS[2], ARGV[4]) then return 0 end
  redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4])
  return 1`;
const COUNTS = `${REAP}
  return {tonumber(redis.call('GET', KEYS[1]) or 0), redis.call('ZCOUNT', KEYS[2], 0, '+inf')}`;
const SET_ALL = `${REAP}
  local free = redis.call('GET', KEYS[1])
  if not free then
    redis.call('SET', KEYS[1], ARGV[4])
  else
    local most = free + redis.call('ZCOUNT', KEYS[2], 0, '+inf')
    if most - ARGV[4] == 0 then return 1 end
    redis.call('INCRBY', KEYS[1], string.format('%.0f', ARGV[4] - most))
  end
  redis.call('PUBLISH', ARGV[1], ARGV[4])
  return 1`;
const ADD_PERMITS = `
  redis.call('SET', KEYS[1], string.format('%.0f', (redis.call('GET', KEYS[1]) or 0) + ARGV[1]))
  if tonumber(ARGV[1]) > 0 then redis.call('PUBLISH', ARGV[2], ARGV[1]) end
  return 1`;

const TRY_SET_COUNT = `
  if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
  redis.call('SET', KEYS[1], ARGV[1])
  redis.call('PUBLISH', ARGV[2], '1')
  return 1`;
const COUNT_DOWN = `
  local v = redis.call('DECR', KEYS[1])
  if v <= 0 then redis.call('DEL', KEYS[1]) end
  if v == 0 then redis.call('PUBLISH', ARGV[1], '0') end
  return 1`;
const DELETE_LATCH = `
  if redis.call('DEL', KEYS[1]) == 0 then return 0 end
  redis.call('PUBLISH', ARGV[1], '1')
  return 1`;

type Values = Readonly<Record<string, unknown>>;
type Argument = string | number | Buffer;

/** Models one JVM. Its waiters share a subscriber connection. The number in a message is how many waiters it wakes. */
export class JavaModel implements PermitPeer {
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #waiters = new Map<string, Set<() => void>>();
  /** Milliseconds by which the clock of this JVM is ahead of the server's. */
  readonly #aheadMs: number;

  constructor(redis: Redis, aheadMs = 0) {
    this.#redis = redis;
    this.#aheadMs = aheadMs;
    this.#subscriber = redis.duplicate();
    this.#subscriber.on("message", (channel: string, message: string) => this.#heard(channel, message));
  }

  close(): void {
    this.#subscriber.disconnect();
  }

  async call<Answer>(verb: string, values: Values): Promise<Answer> {
    const [kind = "", rest = ""] = verb.split(".");
    const name = String(values.name);
    const answer =
      kind === "latch"
        ? this.#latch(rest, name, values)
        : kind === "permit"
          ? this.#permit(rest, name, values)
          : this.#semaphore(rest, name, values);
    // The calling test knows the result type of the verb.
    return (await answer) as Answer;
  }

  async #semaphore(verb: string, name: string, values: Values): Promise<unknown> {
    const { permits = 1, waitMs } = values;
    const amount = Number(permits);
    const channel = derived("redisson_sc", name);
    const attempt = async (): Promise<boolean> => (await this.#run(TRY_ACQUIRE, [name], [amount])) === 1;
    switch (verb) {
      case "trySetPermits":
        return (await this.#run(TRY_SET, [name], [amount, channel])) === 1;
      case "addPermits":
        return (await this.#run(ADD, [name], [amount, channel])) === 1;
      case "release":
        return (await this.#run(RELEASE, [name], [amount, channel])) === 1;
      case "drainPermits":
        return this.#run(DRAIN, [name], []);
      case "availablePermits":
        return Number(await this.#redis.get(name));
      case "tryAcquire":
        return waitMs === undefined ? attempt() : this.#until(channel, attempt, (taken) => taken, Number(waitMs));
      case "acquire":
        return this.#until(channel, attempt, (taken) => taken);
      case "delete":
        return (await this.#redis.del(name)) === 1;
      default:
        throw new Error(`the model has no verb semaphore.${verb}`);
    }
  }

  async #permit(verb: string, name: string, values: Values): Promise<unknown> {
    const { permits = 1, waitMs = 0, leaseMs = -1, permitId = "", permitIds = [] } = values;
    const amount = Number(permits);
    const keys = [name, name.includes("{") ? `${name}:timeout` : `{${name}}:timeout`];
    const channel = derived("redisson_sc", name);
    const id = Buffer.from(String(permitId), "hex");
    const now = (): number => Date.now() + this.#aheadMs;
    const deadline = (): number => (Number(leaseMs) > 0 ? now() + Number(leaseMs) : NEVER);
    const take = async (): Promise<string[] | number | undefined> => {
      const ids = Array.from({ length: amount }, () => randomBytes(16));
      const reply = await this.#run(TAKE, keys, [channel, now(), amount, deadline(), amount, ...ids]);
      if (reply === "OK") return ids.map((bytes) => bytes.toString("hex"));
      return typeof reply === "string" ? Number(reply.slice(1)) - now() : undefined;
    };
    const taken = async (forMs?: number): Promise<string[]> => {
      const got = await this.#until(channel, take, Array.isArray, forMs);
      return Array.isArray(got) ? got : [];
    };
    const counts = async (): Promise<number[]> =>
      (await this.#run(COUNTS, keys, [channel, now(), Number.MAX_SAFE_INTEGER])) as number[];
    switch (verb) {
      case "trySetPermits":
        return (await this.#run(TRY_SET, [name], [amount, channel])) === 1;
      case "setPermits":
        return (await this.#run(SET_ALL, keys, [channel, now(), Number.MAX_SAFE_INTEGER, amount])) === 1;
      case "addPermits":
        return (await this.#run(ADD_PERMITS, [name], [amount, channel])) === 1;
      case "acquire":
        return (await taken())[0];
      case "tryAcquire":
        return (await taken(Number(waitMs)))[0] ?? null;
      case "tryAcquireSome":
        return taken(Number(waitMs));
      case "tryRelease":
        return (await this.#run(GIVE, keys, [channel, now(), id])) === 1;
      case "release":
        if ((await this.#run(GIVE, keys, [channel, now(), id])) !== 1) throw new Error("IllegalArgumentException");
        return true;
      case "releaseSome": {
        const ids = (permitIds as string[]).map((text) => Buffer.from(text, "hex"));
        const removed = await this.#run(GIVE_SOME, keys, [channel, now(), Number.MAX_SAFE_INTEGER, ...ids]);
        if (removed === 0) throw new Error("IllegalArgumentException");
        return true;
      }
      case "updateLeaseTime":
        return (await this.#run(UPDATE, keys, [channel, now(), Number.MAX_SAFE_INTEGER, id, deadline()])) === 1;
      case "availablePermits":
        return (await counts())[0];
      case "acquiredPermits":
        return (await counts())[1];
      case "getPermits":
        return (await counts()).reduce((sum, count) => sum + count, 0);
      case "delete":
        return (await this.#redis.del(...keys)) > 0;
      default:
        throw new Error(`the model has no verb permit.${verb}`);
    }
  }

  async #latch(verb: string, name: string, values: Values): Promise<unknown> {
    const channel = `redisson_countdownlatch__channel__{${name}}`;
    const count = async (): Promise<number> => Number(await this.#redis.get(name));
    switch (verb) {
      case "trySetCount":
        return (await this.#run(TRY_SET_COUNT, [name], [Number(values.count), channel])) === 1;
      case "countDown":
        return (await this.#run(COUNT_DOWN, [name], [channel])) === 1;
      case "getCount":
        return count();
      case "delete":
        return (await this.#run(DELETE_LATCH, [name], [channel])) === 1;
      case "await": {
        const isOpen = async (): Promise<boolean> => (await count()) === 0;
        const { waitMs } = values;
        return this.#until(channel, isOpen, (open) => open, waitMs === undefined ? undefined : Number(waitMs));
      }
      default:
        throw new Error(`the model has no verb latch.${verb}`);
    }
  }

  /** Redisson's wait: tries, subscribes, and tries again at each message or when the lease named in the reply ends. */
  async #until<Answer>(
    channel: string,
    attempt: () => Promise<Answer>,
    isDone: (answer: Answer) => boolean,
    waitMs = Infinity,
  ): Promise<Answer> {
    const endMs = performance.now() + waitMs;
    let answer = await attempt();
    if (isDone(answer) || waitMs === 0) return answer;
    let wake = (): void => {};
    const entry = (): void => wake();
    const waiters = this.#waiters.get(channel) ?? new Set();
    this.#waiters.set(channel, waiters);
    waiters.add(entry);
    await this.#subscriber.subscribe(channel);
    try {
      for (;;) {
        let isWoken = false;
        const woken = new Promise<void>((resolve) => {
          wake = () => {
            isWoken = true;
            resolve();
          };
        });
        answer = await attempt();
        const leftMs = endMs - performance.now();
        if (isDone(answer) || leftMs <= 0) return answer;
        const sleepMs = Math.min(leftMs, typeof answer === "number" ? Math.max(0, answer) : Infinity);
        if (!isWoken) await Promise.race([woken, ...(sleepMs < Infinity ? [paused(sleepMs)] : [])]);
      }
    } finally {
      waiters.delete(entry);
      if (waiters.size === 0) await this.#subscriber.unsubscribe(channel);
    }
  }

  #heard(channel: string, message: string): void {
    const waiters = [...(this.#waiters.get(channel) ?? [])];
    // A waiter that hears that a latch was set or deleted keeps waiting, whatever the count is.
    const most = channel.startsWith("redisson_countdownlatch__") ? (message === "0" ? Infinity : 0) : Number(message);
    for (const wake of waiters.slice(0, most)) wake();
  }

  #run(script: string, keys: readonly string[], inputs: readonly Argument[]): Promise<unknown> {
    return this.#redis.eval(script, keys.length, ...keys, ...inputs);
  }
}

function derived(prefix: string, name: string): string {
  return name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}

function paused(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}
