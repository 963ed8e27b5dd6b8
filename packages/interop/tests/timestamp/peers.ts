/**
 * Models of the clients of other systems. They send the commands of the published algorithms to a real server.
 *
 * Tests use only `TimestampPeer`, so that the same rows can run with the real programs.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";

/** Clock of a peer. */
export interface PeerClock {
  /** How far the clock is ahead of the right time. Negative if it is behind. */
  readonly aheadMs?: number;
  /** Stops the clock at this time, in ms since 1970. */
  readonly atMs?: number;
}

/** One client of another system, with one lock. */
export interface TimestampPeer {
  /** Its lock function without the waiting. */
  tryLock(): Promise<boolean>;
  /** Like `tryLock`, but halts before its takeover, when it has read the old value. `finish` continues it. */
  tryLockUpToTakeover(): Promise<HaltedTry>;
  unlock(): Promise<void>;
}

/** A try that has halted before its takeover. */
export interface HaltedTry {
  finish(): Promise<boolean>;
}

/** Makes a client of one system. */
export type MakePeer = (redis: Redis, key: string, clock?: PeerClock) => TimestampPeer;

type Halt = () => Promise<void>;

function clockOf({ aheadMs = 0, atMs }: PeerClock = {}): () => number {
  return () => atMs ?? Date.now() + aheadMs;
}

function peer(tryOnce: (halt: Halt) => Promise<boolean>, unlock: () => Promise<void>): TimestampPeer {
  return {
    tryLock: () => tryOnce(async () => {}),
    unlock,
    async tryLockUpToTakeover() {
      let isThere = (): void => {};
      let goOn = (): void => {};
      const reached = new Promise<void>((resolve) => {
        isThere = resolve;
      });
      const released = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const ended = tryOnce(() => {
        isThere();
        return released;
      });
      // A try without a takeover ends by itself.
      await Promise.race([reached, ended]);
      return {
        finish: () => {
          goOn();
          return ended;
        },
      };
    },
  };
}

/** PHP's int cast: the leading number of a value, or 0. */
function phpInt(value: string | null): number {
  return Number.parseInt(value ?? "", 10) || 0;
}

/** PHP, SETNX and SET … GET. */
export const phpSetGetPeer: MakePeer = (redis, key, clock) => {
  const now = clockOf(clock);
  return peer(
    async (halt) => {
      const nowS = Math.floor(now() / 1_000);
      if ((await redis.setnx(key, nowS + 30)) === 1) return true;
      if (phpInt(await redis.get(key)) > nowS) return false;
      await halt();
      return phpInt(await redis.set(key, nowS + 30, "GET")) < nowS;
    },
    async () => void (await redis.del(key)),
  );
};

const PHP_LUA_LEASE_S = 3;
/** LOCK_RETRY_MAX. */
const PHP_LUA_TRIES = 3;
const PHP_LUA_ACQUIRE = `
  if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then
    redis.call('expire', KEYS[1], ARGV[2] + 1)
    return 0
  end
  local ends = redis.call('get', KEYS[1])
  if not ends then return 1 end
  if tonumber(ends) > tonumber(ARGV[3]) then return 2 end
  local old = redis.call('getset', KEYS[1], ARGV[1] + ARGV[2] + 1)
  if tonumber(old) == tonumber(ends) then
    redis.call('expire', KEYS[1], ARGV[2] + 1)
    return 0
  end
  return 3`;
const PHP_LUA_RELEASE = `
  local ends = redis.call('get', KEYS[1])
  if ends and tonumber(ends) <= tonumber(ARGV[1]) then redis.call('del', KEYS[1]) end`;

/** PHP with a Lua script. Its pause of 0.3 s becomes 0, as in the published code. */
export const phpLuaPeer: MakePeer = (redis, key, clock) => {
  const now = clockOf(clock);
  const nowS = (): number => Math.floor(now() / 1_000);
  const once = (): Promise<unknown> =>
    redis.eval(PHP_LUA_ACQUIRE, 1, key, nowS() + PHP_LUA_LEASE_S + 1, PHP_LUA_LEASE_S, nowS());
  return peer(
    async () => {
      let code: unknown;
      for (let tries = 0; tries < PHP_LUA_TRIES; tries += 1) {
        code = await once();
        if (code === 0) break;
      }
      return code === 0;
    },
    async () => void (await redis.eval(PHP_LUA_RELEASE, 1, key, nowS())),
  );
};

/** Java's Long.parseLong. @throws Error  NumberFormatException */
function parseLong(value: string): number {
  if (!/^[+-]?\d+$/.test(value)) throw new Error(`NumberFormatException: ${value}`);
  return Number(value);
}

/** Java, SETNX and GETSET: one round of its wait, with one object that all threads share. */
export const javaGetSetPeer: MakePeer = (redis, key, clock) => {
  const now = clockOf(clock);
  let locked = false;
  return peer(
    async (halt) => {
      const value = `${now() + 60_000 + 1}`;
      if ((await redis.setnx(key, value)) === 1) {
        locked = true;
        return true;
      }
      const current = await redis.get(key);
      if (current === null || parseLong(current) >= now()) return false;
      await halt();
      const old = await redis.getset(key, value);
      if (old === null || old !== current) return false;
      locked = true;
      return true;
    },
    async () => {
      if (!locked) return;
      await redis.del(key);
      locked = false;
    },
  );
};

/** C++, SETNX and GETSET. `isOver` decides what equal times mean because the article is ambiguous. */
export function cppGetSetPeerOf(isOver: (ends: number, nowS: number) => boolean): MakePeer {
  return (redis, key, clock) => {
    const now = clockOf(clock);
    return peer(
      async (halt) => {
        const nowS = Math.floor(now() / 1_000);
        if ((await redis.setnx(key, nowS + 3)) === 1) return true;
        const current = await redis.get(key);
        if (current === null || !isOver(Number.parseInt(current, 10), nowS)) return false;
        await halt();
        const old = await redis.getset(key, nowS + 3);
        return old !== null && isOver(Number.parseInt(old, 10), nowS);
      },
      async () => void (await redis.del(key)),
    );
  };
}

/** C++, in the reading that Holdfast follows: equal times are not over. */
export const cppGetSetPeer: MakePeer = cppGetSetPeerOf((ends, nowS) => ends < nowS);

const UUID_LEASE_MS = 30_000;

/** One object of the Java lock with a UUID, used by one thread. A local count makes it reentrant. */
export class UuidPeer implements TimestampPeer {
  readonly #redis: Redis;
  readonly #key: string;
  #held: { readonly uuid: string; count: number } | undefined;
  /** Whether its schedule still renews. The original runs every 10 s; this model runs when `renew` is called. */
  isRenewing = false;
  isInterrupted = false;

  constructor(redis: Redis, key: string) {
    this.#redis = redis;
    this.#key = key;
  }

  async tryLock(): Promise<boolean> {
    if (this.#held !== undefined) {
      this.#held.count += 1;
      return true;
    }
    const uuid = randomUUID();
    if ((await this.#redis.set(this.#key, uuid, "PX", UUID_LEASE_MS, "NX")) !== "OK") return false;
    this.#held = { uuid, count: 1 };
    this.isRenewing = true;
    return true;
  }

  async tryLockUpToTakeover(): Promise<HaltedTry> {
    const won = await this.tryLock();
    return { finish: async () => won };
  }

  async unlock(): Promise<void> {
    if (this.#held === undefined) return;
    this.#held.count -= 1;
    if (this.#held.count > 0) return;
    await this.#compareAnd("DEL", this.#held.uuid);
    this.#held = undefined;
    this.isRenewing = false;
  }

  /** One run of its schedule, by a thread that has read the UUID before. */
  async renew(uuid: string = this.#held?.uuid ?? ""): Promise<void> {
    if (!this.isRenewing) return;
    try {
      if (!(await this.#compareAnd("PEXPIRE", uuid))) this.isInterrupted = true;
    } catch {
      // A fixed-rate schedule ends silently with the first exception.
      this.isRenewing = false;
    }
  }

  get uuid(): string {
    return this.#held?.uuid ?? "";
  }

  async #compareAnd(command: "DEL" | "PEXPIRE", uuid: string): Promise<boolean> {
    const call = command === "DEL" ? "redis.call('DEL', KEYS[1])" : `redis.call('PEXPIRE', KEYS[1], ${UUID_LEASE_MS})`;
    const script = `if redis.call('GET', KEYS[1]) == ARGV[1] then return ${call} end return 0`;
    return (await this.#redis.eval(script, 1, this.#key, uuid)) === 1;
  }
}

/** Java, SET key uuid NX PX. */
export const javaUuidPeer: MakePeer = (redis, key) => new UuidPeer(redis, key);
