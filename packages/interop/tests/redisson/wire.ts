/** Records the keys and messages that a side writes and publishes, so that two sides can be compared. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect } from "vitest";
import type { Locked, LockType, Maker, Side } from "./side.js";

const LEASE_MS = 50_000;
const OWNER = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+/g;

/** Records the keys and messages of one server. */
class Witness {
  readonly port: number;
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #heard: string[] = [];

  constructor(port: number) {
    this.port = port;
    this.#redis = new Redis({ port });
    this.#subscriber = new Redis({ port });
    this.#subscriber.on("pmessage", (_pattern, channel: string, message: string) =>
      this.#heard.push(`${channel} ${message}`),
    );
  }

  async listen(): Promise<void> {
    await this.#subscriber.psubscribe("redisson*");
  }

  /** Messages that mention `text` and were published since the last call. */
  async messages(text: string): Promise<string[]> {
    await this.#subscriber.ping();
    return this.#heard.splice(0).filter((line) => line.includes(text));
  }

  /** All keys on the server that contain `text`, with their type, value and whether they expire. */
  async keysAbout(text: string): Promise<string[]> {
    const redis = this.#redis;
    const keys = (await redis.keys("*")).filter((key) => key.includes(text) && !key.includes("unlock_latch"));
    const lines = keys.map(async (key) => {
      const type = await redis.type(key);
      const value =
        type === "hash"
          ? JSON.stringify(
              Object.entries(await redis.hgetall(key))
                .map(String)
                .toSorted(),
            )
          : type === "list"
            ? JSON.stringify(await redis.lrange(key, 0, -1))
            : type === "zset"
              ? JSON.stringify(await this.#scoresOf(key))
              : JSON.stringify(await redis.get(key));
      return `${type} ${key} = ${value}, ${(await redis.pttl(key)) < 0 ? "for ever" : "for a time"}`;
    });
    return (await Promise.all(lines)).toSorted();
  }

  /** Deadlines in half minutes from now, so that two runs yield the same text. */
  async #scoresOf(key: string): Promise<string[]> {
    const members = await this.#redis.zrange(key, "0", "-1", "WITHSCORES");
    return members.map((part, i) => {
      if (i % 2 === 0) return part;
      expect(part, "a whole number of milliseconds").toMatch(/^\d+$/);
      return `${Math.round((Number(part) - Date.now()) / 30_000)} half minutes`;
    });
  }

  close(): void {
    this.#redis.disconnect();
    this.#subscriber.disconnect();
  }
}

/** A sequence of steps between one side and another of the same kind. */
type Story = (scene: {
  readonly one: Side;
  readonly other: Side;
  readonly what: Locked;
  readonly seen: (step: string) => Promise<void>;
  readonly keys: () => Promise<string[]>;
}) => Promise<void>;

const taken = async (side: Side, what: Locked): Promise<{ unlock(): Promise<boolean> }> => {
  const held = await side.acquire(what, { waitMs: 0, leaseMs: LEASE_MS });
  if (held === undefined) throw new Error("it was not free");
  return held;
};

/** Acquires and releases the lock. */
export const givesBack: Story = async ({ one, what, seen }) => {
  const held = await taken(one, what);
  await seen("held");
  await held.unlock();
  await seen("given back");
};

/** One side acquires the lock, and the other force-releases it. */
export const isRobbed: Story = async ({ one, other, what, seen }) => {
  await taken(one, what);
  await seen("held");
  await other.forceUnlock(what);
  await seen("taken away");
};

/** Both sides hold the lock concurrently. */
export const readTogether: Story = async ({ one, other, what, seen }) => {
  const first = await taken(one, what);
  const second = await taken(other, what);
  await seen("both read");
  await first.unlock();
  await seen("one reads");
  await second.unlock();
  await seen("nobody reads");
};

/** One side holds the lock, two waiters queue, and each gets it in turn. */
export const queues: Story = async ({ one, other, what, seen, keys }) => {
  const held = await taken(one, what);
  const waiting = other.acquire(what, { waitMs: 100_000, leaseMs: LEASE_MS });
  await expect.poll(async () => (await keys()).length).toBe(3);
  const second = one.acquire(what, { waitMs: 40_000, leaseMs: LEASE_MS });
  await expect.poll(async () => (await keys()).join().match(OWNER)?.length).toBe(5);
  await seen("two wait");
  await held.unlock();
  const next = await waiting;
  await seen("one waits");
  await next?.unlock();
  const last = await second;
  await seen("nobody waits");
  await last?.unlock();
  await seen("free");
};

/** Shape and prefix of names. */
export interface NameShape {
  readonly shape: (text: string) => string;
  readonly prefix: string;
}

/** The name shapes of the checklist. */
export const NAME_SHAPES: readonly (readonly [label: string, NameShape])[] = [
  ["plain", { shape: (text) => text, prefix: "" }],
  ["order:{42}", { shape: (text) => `order:{${text}}`, prefix: "" }],
  ["{t}x", { shape: (text) => `{${text}}x`, prefix: "" }],
  ["mapped", { shape: (text) => text, prefix: "svc:" }],
];

/** Runs a story and returns its visible effects, without owner ids. */
export type Tell = (maker: Maker, type: LockType, story: Story, name: NameShape) => Promise<string[]>;

/** @param port  returns the port of the server once it runs */
export function useWitness(port: () => number): Tell {
  let witness: Witness;
  beforeAll(async () => {
    witness = new Witness(port());
    await witness.listen();
  });
  afterAll(() => witness?.close());

  return async (maker, type, story, { shape, prefix }) => {
    const text = randomUUID().slice(0, 8);
    const make = (): Promise<Side> => maker.make({ port: witness.port, watchdogMs: 30_000, prefix });
    const [one, other] = await Promise.all([make(), make()]);
    const lines: string[] = [];
    await story({
      one,
      other,
      what: { type, name: shape(text) },
      keys: () => witness.keysAbout(text),
      async seen(step) {
        lines.push(`${step}:`, ...(await witness.keysAbout(text)), ...(await witness.messages(text)));
      },
    });
    await Promise.all([one.close(), other.close()]);
    return lines.map((line) => line.replaceAll(text, "NAME").replace(OWNER, "OWNER"));
  };
}
