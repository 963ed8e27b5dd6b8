/**
 * The least that any lock can do: `SET key value NX PX` to take it, compare-and-delete to give it back. No token,
 * no queue, no renewal. Everything else is measured as a ratio to this.
 */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Adapter, Held } from "./adapter.js";
import { newClient } from "./client.js";

const LEASE_MS = 30_000;
/** What is usual where waiting is polling: 10 ms on average, spread so that callers do not march in step. */
const RETRY_MIN_MS = 5;
const RETRY_MAX_MS = 15;

const COMPARE_AND_DELETE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const SHA1 = createHash("sha1").update(COMPARE_AND_DELETE).digest("hex");

/** See the file header. */
export const raw: Adapter = {
  name: "raw",
  version: "",
  commands: ["set", "evalsha"],

  async open(connection) {
    const client = newClient(connection);
    await client.script("LOAD", COMPARE_AND_DELETE);
    const owners = randomBytes(12).toString("base64url");
    let last = 0;
    return {
      async acquire(name) {
        last += 1;
        const held = new RawHeld(client, `raw:{${name}}`, `${owners}/${last}`);
        while (!(await held.take())) await sleep(RETRY_MIN_MS + Math.random() * (RETRY_MAX_MS - RETRY_MIN_MS));
        return held;
      },
      async close() {
        await client.quit();
      },
    };
  },
};

class RawHeld implements Held {
  readonly #client: Redis;
  readonly #key: string;
  readonly #owner: string;

  constructor(client: Redis, key: string, owner: string) {
    this.#client = client;
    this.#key = key;
    this.#owner = owner;
  }

  async take(): Promise<boolean> {
    return (await this.#client.set(this.#key, this.#owner, "PX", LEASE_MS, "NX")) !== null;
  }

  release(): Promise<unknown> {
    return this.#client.evalsha(SHA1, 1, this.#key, this.#owner);
  }
}
