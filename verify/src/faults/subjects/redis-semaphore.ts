/** Adapter for redis-semaphore: mutexes and semaphores on one server, renewed by default. */

import type { Redis } from "ioredis";
import { type LockOptions, MultiSemaphore, Mutex, Semaphore } from "redis-semaphore";
import type { Kind } from "../../history/records.js";
import type { Connection, Held, Refused, Renewal, Request, Subject } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import { CertainLease, connectIoredis, info, lacks, no, versionOf } from "./peer.js";

/** redis-semaphore as a subject. */
export const subject: Subject = {
  name: "redis-semaphore",
  version: versionOf("redis-semaphore"),
  settings:
    "its defaults; renewed every 0.8 leases, only in cells with renewal; states no validity; its release resolves " +
    "without a value, which counts as unknown after the lease",
  letters: ["m", "s", "a"],
  async connect(settings) {
    const client = await connectIoredis(settings);
    const connection: Connection = {
      acquire: (request, kind) => new Claim(client, request, kind).acquire(),
      async close() {
        client.disconnect();
      },
    };
    return connection;
  },
};

type Words = (string | number)[];

class Claim {
  readonly #client: Redis;
  readonly #request: Request;
  readonly #kind: Kind;
  readonly #lostListeners: (() => void)[] = [];
  readonly #renewalListeners: ((renewal: Renewal) => void)[] = [];
  #lock: Mutex;
  #leaseMs: number;
  /** Whether the current command belongs to a call of the session; otherwise it is an automatic renewal. */
  #isAsked = false;
  #sentMs = 0;

  constructor(client: Redis, request: Request, kind: Kind) {
    this.#client = client;
    this.#request = request;
    this.#kind = kind;
    this.#leaseMs = request.leaseMs;
    this.#lock = this.#newLock(request.leaseMs, waitOf(request));
  }

  async acquire(): Promise<Held | Refused> {
    const { signal, onOwner } = this.#request;
    onOwner?.(this.#lock.identifier);
    try {
      const isAcquired = await this.#asked(() => this.#lock.tryAcquire(signal));
      if (!isAcquired) return no("busy", "tryAcquire says no");
    } catch (error) {
      // The library checks the signal only between two attempts, so no attempt is in flight.
      if (signal?.aborted === true && error === signal.reason) return no("gave-up", "aborted");
      return info(error);
    }
    return this.#held(new CertainLease(this.#sentMs, this.#leaseMs));
  }

  #held(lease: CertainLease): Held {
    this.#renewalListeners.push(({ leaseMs, ended }) => {
      const callMs = monotonicMs();
      void ended.then((refused) => refused ?? lease.renewed(callMs, leaseMs));
    });
    return {
      owner: this.#lock.identifier,
      token: null,
      validUntilMs: () => null,
      isHeld: () => this.#lock.isAcquired,
      onLost: (listener) => void this.#lostListeners.push(listener),
      onRenewal: (listener) => void this.#renewalListeners.push(listener),
      onRenewed() {},
      extend: (leaseMs) => this.#extend(leaseMs, lease),
      release: () => this.#release(lease),
    };
  }

  /** Extends as the library's README describes: a new object with the same identifier takes over the lock. */
  async #extend(leaseMs: number, lease: CertainLease): Promise<undefined | Refused> {
    const { identifier } = this.#lock;
    const next = this.#newLock(leaseMs, { identifier, acquiredExternally: true });
    try {
      const isRefreshed = await this.#asked(() => next.tryAcquire());
      if (!isRefreshed) return no("not-owner", "the refresh says no");
    } catch (error) {
      return info(error);
    }
    this.#lock.stopRefresh();
    this.#lock = next;
    this.#leaseMs = leaseMs;
    lease.renewed(this.#sentMs, leaseMs);
    return undefined;
  }

  async #release(lease: CertainLease): Promise<undefined | Refused> {
    const { isAcquired } = this.#lock;
    try {
      await this.#asked(() => this.#lock.release());
    } catch (error) {
      return info(error);
    }
    return isAcquired ? lease.resolved("release") : no("not-sent", "it was found lost before");
  }

  #newLock(leaseMs: number, own: LockOptions): Mutex {
    const { lockName, renew, limit, permits } = this.#request;
    const options: LockOptions = {
      lockTimeout: leaseMs,
      ...(renew ? {} : { refreshInterval: 0 }),
      onLockLost: () => {
        for (const listener of this.#lostListeners) listener();
      },
      ...own,
    };
    const client = this.#observedClient();
    if (this.#kind === "mutex") return new Mutex(client, lockName, options);
    if (this.#kind !== "semaphore") return lacks("redis-semaphore", this.#kind);
    if (permits === 1) return new Semaphore(client, lockName, limit, options);
    return new MultiSemaphore(client, lockName, limit, permits, options);
  }

  async #asked<T>(call: () => Promise<T>): Promise<T> {
    this.#isAsked = true;
    try {
      return await call();
    } finally {
      this.#isAsked = false;
    }
  }

  /** A client that forwards the library's commands, and records when each was sent and the result of renewals. */
  #observedClient(): ConstructorParameters<typeof Mutex>[0] {
    const client = this.#client;
    const observe = (send: () => Promise<unknown>): Promise<unknown> => {
      this.#sentMs = monotonicMs();
      const answer = send();
      if (!this.#isAsked) this.#tellOf(answer);
      return answer;
    };
    return {
      options: client.options,
      get: (...words: Words) => observe(() => client.call("get", ...words)),
      set: (...words: Words) => observe(() => client.call("set", ...words)),
      zrem: (...words: Words) => observe(() => client.call("zrem", ...words)),
      eval: (...words: Words) => observe(() => client.call("eval", ...words)),
      evalsha: (...words: Words) => observe(() => client.call("evalsha", ...words)),
    };
  }

  #tellOf(answer: Promise<unknown>): void {
    const ended = answer.then(
      (count) => (Number(count) === 1 ? undefined : no("not-owner", "the refresh says no")),
      // The library then sends the full script.
      (error: unknown) => (String(error).includes("NOSCRIPT") ? no("not-sent", "NOSCRIPT") : info(error)),
    );
    const { lockName } = this.#request;
    for (const listener of this.#renewalListeners) listener({ lockName, leaseMs: this.#leaseMs, ended });
  }
}

function waitOf({ waitMs }: Request): LockOptions {
  if (waitMs === 0) return { acquireAttemptsLimit: 1 };
  return { acquireTimeout: waitMs ?? Number.POSITIVE_INFINITY };
}
